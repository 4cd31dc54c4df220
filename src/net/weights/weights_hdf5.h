// The HDF5 side of weights: which layer lies where.
#pragma once

#include <functional>
#include <string>

#include "net/weights/wire_reader.h"

namespace crema {

// Where a layer lies below "data": HDF5 takes '/' in its name for groups inside groups, and drops
// empty parts and ".". Error when nothing is left.
std::string hdf5_place(const std::string& layer);

// Calls `found` for each layer of an HDF5 weights file; its name is its place. A blob that the file
// leaves out (stored with its owner) has no values.
void read_hdf5_weights(const std::string& path,
                       const std::function<void(const StoredLayer&)>& found);

}  // namespace crema

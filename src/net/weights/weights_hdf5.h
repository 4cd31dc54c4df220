// The HDF5 side of weights: where each layer is stored.
#pragma once

#include <functional>
#include <string>

#include "net/weights/wire_reader.h"

namespace crema {

// The path of a layer's group below "data": HDF5 takes '/' in its name for nested groups, and drops
// empty parts and ".". Error when nothing is left.
std::string hdf5_group(const std::string& layer);

// Calls `found` for each layer of an HDF5 weights file; its name is its path. A blob that the file
// leaves out (stored with its owner) has no values.
void read_hdf5_weights(const std::string& path,
                       const std::function<void(const StoredLayer&)>& found);

}  // namespace crema

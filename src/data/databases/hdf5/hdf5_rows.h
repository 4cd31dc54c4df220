// The rows of HDF5 files as records, as other databases have them: the dataset `data` as real
// numbers, and `label` if there is one.
#pragma once

#include <memory>

#include "data/databases/source.h"

namespace crema {

// `path`: an HDF5 file, or a list of them. Keys are the rows' numbers, from "00000000". A row of
// data has 1 to 3 axes: of one the extents are channels, of two channels and height. A label that is
// one integer becomes Datum.label, any other Datum.labels.
std::unique_ptr<Source> open_hdf5_rows(const std::string& path);

}  // namespace crema

// The structures of an HDF5 file, looked at before its library reads them. The library believes
// most of what stands in them: sizes of heaps, counts in nodes, places of bits in numbers. A
// damaged one ends in SIGSEGV or in a loop without end, a malicious one may end anywhere.
#pragma once

#include <string>

namespace crema {

// Walks from the root to every object. Error, naming `path`, the structure and its place, when one
// is not as the format (HDF5 File Format Specification, version 3.0) says, does not lie in the
// file, or lies where another one does. Objects of groups that are kept in the dense form of HDF5
// 1.8 and later are not walked to, and neither are their indices: these have checksums, which the
// library compares.
void check_hdf5_structure(const std::string& path);

}  // namespace crema

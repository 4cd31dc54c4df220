// Checks the structures of an HDF5 file before its library reads them. The library trusts most of
// what they contain: sizes of heaps, counts in nodes, bit offsets in numbers. A damaged one ends in
// SIGSEGV or an infinite loop; a malicious one may end anywhere.
#pragma once

#include <string>

namespace crema {

// Walks from the root to every object. Error, naming `path`, the structure and its position, if one
// violates the format (HDF5 File Format Specification, version 3.0), is not inside the file, or
// overlaps another one. Objects of groups in the dense form of HDF5 1.8 and later are not visited,
// and neither are their indices: these have checksums, which the library verifies.
void check_hdf5_structure(const std::string& path);

}  // namespace crema

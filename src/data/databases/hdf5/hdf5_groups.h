// Checks the groups of an HDF5 file in their first form: a tree of lists of names, which are in a
// heap.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "data/databases/hdf5/hdf5_ranges.h"

namespace crema {

class Hdf5Groups {
 public:
  // Named objects are added to `objects`.
  Hdf5Groups(Hdf5Ranges& positions, std::vector<uint64_t>& objects)
      : ranges_(positions), objects_(objects) {}

  // Adds a group by the addresses of its tree and its heap. walk() checks it later, because groups
  // may be nested more deeply than any stack.
  void add(uint64_t tree, uint64_t heap);
  // Checks all added groups; Hdf5Damage when one of them is invalid.
  void walk();

  // Checks the message that names the external files with a dataset's values.
  void external_files(Hdf5Fields& fields);

 private:
  using Names = std::vector<uint8_t>;
  Names heap(uint64_t address);
  static void check_name(const Hdf5Fields& of, uint64_t at, const Names& names);
  // `level`: the required level; negative: any.
  void node(uint64_t address, int level, const Names& names);
  void list(uint64_t address, const Names& names);

  Hdf5Ranges& ranges_;
  std::vector<uint64_t>& objects_;
  std::map<uint64_t, uint64_t> heaps_;  // by the address of the tree
  std::vector<uint64_t> ahead_;
};

}  // namespace crema

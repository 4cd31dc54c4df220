// The groups of an HDF5 file in their first form: a tree of lists of names, which lie in a heap.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "data/databases/hdf5_places.h"

namespace crema {

class Hdf5Groups {
 public:
  // Objects with names are added to `objects`.
  Hdf5Groups(Hdf5Places& places, std::vector<uint64_t>& objects)
      : places_(places), objects_(objects) {}

  // A group by the addresses of its tree and its heap. It is walked through later: groups may be
  // nested deeper than any stack.
  void add(uint64_t tree, uint64_t heap);
  // Hdf5Damage when one of those that were added is not as it must be.
  void walk();

  // The message that names the files in which a dataset's values are.
  void external_files(Hdf5Fields& fields);

 private:
  using Names = std::vector<uint8_t>;
  Names heap(uint64_t address);
  static void check_name(const Hdf5Fields& of, uint64_t at, const Names& names);
  // `level` that it must have; below 0 for any.
  void node(uint64_t address, int level, const Names& names);
  void list(uint64_t address, const Names& names);

  Hdf5Places& places_;
  std::vector<uint64_t>& objects_;
  std::map<uint64_t, uint64_t> heaps_;  // by the address of the tree
  std::vector<uint64_t> ahead_;
};

}  // namespace crema

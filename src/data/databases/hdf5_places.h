// Where the structures of an HDF5 file lie: each inside the file, in a place of its own.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/random_access_file.h"
#include "data/databases/hdf5_fields.h"

namespace crema {

// Addresses count from the superblock, which other data may precede.
class Hdf5Places {
 public:
  // Half of the entries that a node of an index has room for.
  struct Room {
    uint64_t names = 4, groups = 16, chunks = 32;
  };

  // Finds the superblock; Hdf5Damage when there is none.
  explicit Hdf5Places(const std::string& path);

  uint64_t end() const { return end_; }
  void end_at(uint64_t end) { end_ = end; }

  // Hdf5Damage when such bytes are not all in the file.
  void hold(const std::string& what, uint64_t address, uint64_t size) const;
  Hdf5Fields look(const std::string& what, uint64_t address, uint64_t size) const;
  // They belong to this structure alone, which check() holds.
  void claim(const std::string& what, uint64_t address, uint64_t size);
  Hdf5Fields take(const std::string& what, uint64_t address, uint64_t size);
  // Hdf5Damage when two structures claimed the same bytes.
  void check();

  bool first_visit(uint64_t address) { return visited_.insert(address).second; }

  Room room;

 private:
  struct Place {
    uint64_t begin, size;
    std::string what;
  };

  RandomAccessFile file_;
  uint64_t base_ = 0, end_ = 0;
  std::set<uint64_t> visited_;
  std::vector<Place> places_;
};

}  // namespace crema

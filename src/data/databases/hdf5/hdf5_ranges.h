// Hdf5Ranges: the byte ranges of an HDF5 file's structures. Each is inside the file and overlaps no
// other.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/random_access_file.h"
#include "data/databases/hdf5/hdf5_fields.h"

namespace crema {

// Addresses count from the superblock, which other data may precede.
class Hdf5Ranges {
 public:
  // Half of the maximum number of entries of an index node.
  struct Room {
    uint64_t names = 4, groups = 16, chunks = 32;
  };

  // Finds the superblock; Hdf5Damage when there is none.
  explicit Hdf5Ranges(const std::string& path);

  uint64_t end() const { return end_; }
  void end_at(uint64_t end) { end_ = end; }

  // Hdf5Damage when the range is not entirely inside the file.
  void hold(const std::string& what, uint64_t address, uint64_t size) const;
  Hdf5Fields look(const std::string& what, uint64_t address, uint64_t size) const;
  // Like hold() and look(), for ranges that belong to this structure only, which check() verifies.
  void claim(const std::string& what, uint64_t address, uint64_t size);
  Hdf5Fields take(const std::string& what, uint64_t address, uint64_t size);
  // Hdf5Damage when two structures have claimed the same bytes.
  void check();

  bool first_visit(uint64_t address) { return visited_.insert(address).second; }

  Room room;

 private:
  struct Range {
    uint64_t begin, size;
    std::string what;
  };

  RandomAccessFile file_;
  uint64_t base_ = 0, end_ = 0;
  std::set<uint64_t> visited_;
  std::vector<Range> ranges_;
};

}  // namespace crema

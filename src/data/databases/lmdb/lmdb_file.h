// LmdbFile: reads the data file of an LMDB by its format, without its library. The library maps the
// file and trusts every byte of it: a damaged one ends in SIGSEGV, SIGBUS or an assertion that
// aborts, or yields too few records. Here no byte is trusted.
//
// The format (version 1, of LMDB 0.9; numbers little-endian, 64-bit): pages of one size. Pages 0
// and 1 are meta pages, written alternately, one per transaction; the later one counts. It names
// the root of a B+ tree of branch and leaf pages, with keys in ascending order. A value that is too
// large for a leaf has its own contiguous overflow pages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/random_access_file.h"

namespace crema {

class LmdbFile {
 public:
  // Walks through the whole tree. Error, naming `path` (what the user calls the database) and the
  // record, if anything is invalid. Afterwards all records that the file claims to have are known,
  // and each is inside the file and overlaps no other.
  LmdbFile(std::string path, const std::string& file);

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  // The key of a record. Error gives the reason only. Thread-safe.
  std::string key(int64_t index) const;
  // Valid until the same thread requests the next one.
  struct Value {
    std::unique_ptr<char[]> bytes;  // unless they are in the thread's block
    size_t size = 0;
    const char* begin = nullptr;
  };
  Value value(int64_t index) const;
  uint64_t value_size(int64_t index) const { return entries_[index].value_size; }
  // A part of the value.
  void read_value(int64_t index, uint64_t offset, void* bytes, size_t count) const;

 private:
  struct Entry {
    uint64_t key, value;  // where they begin; for an overflow value its first page
    uint32_t value_size;
    uint16_t key_size;
    bool overflow;
  };
  struct Tree {
    uint64_t last_page, entries, root;
    int depth;
  };
  class Walk;

  Tree read_meta();
  void read(uint64_t offset, void* bytes, size_t count) const;
  const char* find_in_block(int64_t index, size_t count) const;

  std::string path_;
  RandomAccessFile file_;
  size_t page_size_ = 0;
  std::vector<Entry> entries_;
  uint64_t id_ = 0;  // unlike that of all other files so far
};

}  // namespace crema

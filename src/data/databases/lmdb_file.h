// The data file of an LMDB, read as its format says and without its library. The library maps the
// file and trusts every byte of it: a damaged one ends in SIGSEGV, SIGBUS or an assertion that
// aborts, or gives fewer records than there were. Here no byte is trusted.
//
// The format (version 1, of LMDB 0.9; numbers little-endian, 64-bit): pages of one size. Pages 0
// and 1 are meta pages, written in turn, one a transaction; the later one counts. It names the root
// of a B+ tree of branch and leaf pages, with keys in ascending order. A value that is large for a
// leaf lies in overflow pages of its own, side by side.
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
  // record, when anything is not as it must be; afterwards all records that the file says to have
  // are known, and lie inside it, each in a place of its own.
  LmdbFile(std::string path, const std::string& file);

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  // Of a record. Error gives the reason only. May be called from several threads at the same time.
  std::string key(int64_t index) const;
  struct Value {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
    const char* begin = nullptr;
  };
  Value value(int64_t index) const;

 private:
  struct Entry {
    uint64_t key, value;  // where they begin; of an overflow value its first page
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

  std::string path_;
  RandomAccessFile file_;
  size_t page_size_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace crema

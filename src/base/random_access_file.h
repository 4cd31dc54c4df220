// A file for reads at arbitrary offsets. It is never memory-mapped: when a mapped file is truncated
// or its disk fails, the next access kills the process (SIGBUS); here it is an Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace crema {

class RandomAccessFile {
 public:
  // Error with the system's reason when the file cannot be opened or is not a regular file.
  explicit RandomAccessFile(std::string path);
  ~RandomAccessFile();
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  const std::string& path() const { return path_; }
  // In bytes, at the time of opening.
  uint64_t size() const { return size_; }
  // The number of bytes read: fewer than `count` only at the end of the file. Error with the
  // system's reason. Thread-safe.
  size_t read(uint64_t offset, void* bytes, size_t count) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace crema

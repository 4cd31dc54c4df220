// A file that is read here and there. It is never mapped into memory: where somebody cuts off a
// mapped file, or its disk fails, the next look at it kills the process (SIGBUS); here it is an
// Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace crema {

class RandomAccessFile {
 public:
  // Error with the system's reason when it cannot be opened, or is no regular file.
  explicit RandomAccessFile(std::string path);
  ~RandomAccessFile();
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  const std::string& path() const { return path_; }
  // In bytes, when it was opened.
  uint64_t size() const { return size_; }
  // How many of the wanted bytes there are: fewer only where the file ends. Error with the system's
  // reason. May be called from several threads at the same time.
  size_t read(uint64_t offset, void* bytes, size_t count) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace crema

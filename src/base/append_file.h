// A file that grows by complete records, even if a write fails in the middle of one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace crema {

class AppendFile {
 public:
  // Opened, and made if it is not there, by the first append(), and again after a failure.
  explicit AppendFile(std::string path) : path_(std::move(path)) {}
  // Already open, and never opened again.
  explicit AppendFile(int descriptor) : file_(descriptor) {}
  ~AppendFile() { close(); }
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // 0, or the system's error number: then the file has nothing of the record. If even what came of
  // it cannot be removed, the next append() does so first.
  int append(std::string_view record);
  void close();
  const std::string& path() const { return path_; }

 private:
  int open();
  int remove_half();

  std::string path_;
  int file_ = -1;
  size_t half_ = 0;         // bytes of a record that was cut off
  long long half_end_ = 0;  // the size of the file with them
};

}  // namespace crema

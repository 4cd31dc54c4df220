// Files of run folders. Such a folder may belong to another user, who could put a link there to a
// private file of the reader, a pipe that never ends, or a file of a terabyte. So only regular
// files are read, up to a limit from the caller, and no component of a path may be a symbolic link.
// Paths come from find_runs(), which resolves links in what the user typed.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace crema {

class RunFile {
 public:
  // Closed where nothing is there, or nothing that may be read.
  explicit RunFile(const std::string& path);
  ~RunFile();
  RunFile(const RunFile&) = delete;
  RunFile& operator=(const RunFile&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  uint64_t size() const { return size_; }
  uint64_t number() const { return number_; }  // of the inode
  // Whether only this user, root, and groups that may write to the folder can have put it there.
  bool is_own() const { return is_open() && own_; }
  // At most `most` bytes from `from` on; fewer at the end of the file or if it cannot be read.
  std::string read(uint64_t from, size_t most) const;

 private:
  bool own_;
  int descriptor_;
  uint64_t size_ = 0, number_ = 0;
};

// The content of a whole file; "" if it does not exist, may not be read, or is larger than `most`.
std::string text_of_run_file(const std::string& path, size_t most);
// At most its last `most` bytes, from the beginning of a line on; "" if it cannot be read.
std::string end_of_run_file(const std::string& path, size_t most);
// Whether it is an existing regular file.
bool is_run_file(const std::string& path);
// When a file or a folder was changed; 0: it is not there.
std::time_t changed_in_run(const std::string& path);
// The sorted names in a folder, at most `most`; none if it cannot be listed.
std::vector<std::string> names_in_run(const std::string& folder, size_t most);
// Makes an empty file unless it is there. Error when it cannot.
void make_run_file(const std::string& path);

}  // namespace crema

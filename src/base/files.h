// Files: whole-file reading, atomic writing, and Caffe's way of finding relative paths.
#pragma once

#include <string>

namespace crema {

bool file_exists(const std::string& path);
bool folder_exists(const std::string& path);
// The folder part: "a/b.txt" -> "a", "b.txt" -> ".".
std::string folder_of(const std::string& path);

// The whole content; Error with the system's reason when it cannot be read.
std::string read_file(const std::string& path);

// A relative path is taken from the working directory, as Caffe does; when nothing is there, from
// `folder`, the folder of the file that names it. When neither exists the path comes back unchanged
// (the opener's message then names it).
std::string find_file(const std::string& path, const std::string& folder);

// A file that appears whole or not at all: written beside its goal under a temporary name, synced,
// renamed by commit(). Without commit() the temporary file is removed.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Where to write: for libraries that open a path themselves (HDF5).
  const std::string& temporary_path() const { return temporary_; }
  // Error names the goal and the system's reason (no space, no permission).
  void write(const void* bytes, size_t count);
  void commit();

 private:
  void close();
  std::string path_, temporary_;
  int descriptor_ = -1;
  bool committed_ = false;
};

void write_file_atomically(const std::string& path, const std::string& content);

}  // namespace crema

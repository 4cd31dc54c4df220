// Files: whole-file reading, atomic writing, and Caffe's way of finding relative paths.
#pragma once

#include <string>

namespace crema {

bool file_exists(const std::string& path);
bool folder_exists(const std::string& path);
// The folder part: "a/b.txt" -> "a", "b.txt" -> ".".
std::string folder_of(const std::string& path);

// The largest file that is read whole, and the largest text. A damaged or hostile path must not
// take all memory.
constexpr size_t kMostBytes = size_t{1} << 31, kMostText = size_t{1} << 30;

// The whole content of a regular file; Error with the reason when it cannot be read, is something
// else or has more bytes. A pipe is read where the shell handed it over, `<(command)` or
// /dev/stdin; a FIFO or a device by name is refused, as it may never end or never begin.
std::string read_file(const std::string& path, size_t most = kMostBytes);
// The same of a text in UTF-8, without the byte-order mark that some editors put in front of it.
// Error for UTF-16.
std::string read_text(const std::string& path, size_t most = kMostText);
// For libraries that open a file themselves: Error where there is one that is not regular.
void require_regular(const std::string& path);

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

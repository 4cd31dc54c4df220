// Files: reading whole files, atomic writing, and Caffe's lookup of relative paths.
#pragma once

#include <string>
#include <vector>

#include "base/exceptions.h"

namespace crema {

// The system refused to look at or to read a file that may well be there.
class FileError : public Error {
 public:
  using Error::Error;
};

// Only "no such file" and "not a folder" (in the middle of the path) mean that nothing is there. Any
// other answer of the system, such as a denied permission or a stale network handle, is a FileError:
// it must not be taken for a free name.
bool file_exists(const std::string& path);
bool folder_exists(const std::string& path);
// The sorted names in a folder, without "." and "..". FileError when it is absent or any of it cannot be
// listed.
std::vector<std::string> list_folder(const std::string& path);
// The same, but empty if the folder does not exist.
std::vector<std::string> list_folder_if_exists(const std::string& path);
// The folder of a path: "a/b.txt" -> "a", "b.txt" -> ".".
std::string folder_of(const std::string& path);
// A path without the slashes at its end: "a/b//" -> "a/b"; "/" stays.
std::string without_slash(std::string path);

// The largest file, and the largest text, that is read as a whole. A damaged or hostile path must
// not exhaust memory.
constexpr size_t kMaxBytes = size_t{1} << 31, kMaxText = size_t{1} << 30;

// The whole content of a regular file; Error with the reason if it cannot be read, is not a regular
// file or is larger. A pipe from the shell, `<(command)` or /dev/stdin, can be read; a FIFO or a
// device by name is refused, because it may never end or never begin.
std::string read_file(const std::string& path, size_t maximum = kMaxBytes);
// The same for UTF-8 text, without the byte-order mark that some editors prepend. Error for UTF-16.
std::string read_text(const std::string& path, size_t maximum = kMaxText);
// For libraries that open files themselves: Error when the path exists and is not a regular file.
void require_regular(const std::string& path);
// FileError when the first or the last byte of a file that exists cannot be read, so that a library's
// failure to read it later means damage.
void require_readable(const std::string& path);

// A relative path is looked up in the working directory, as in Caffe, then in `folder`, that of the
// file that names it, and in those above it: files of models/ name each other from the top of the
// tree. If none exists the path is returned unchanged, so that the error on opening it names it.
std::string find_file(const std::string& path, const std::string& folder);

// A file that appears only when it is complete: it is written next to its target under a temporary
// name, synced, and renamed by commit(). Without commit() the temporary file is removed.
class AtomicFile {
 public:
  // Whether to first remove what killed processes left of this target, which requires listing its
  // folder.
  enum class Leftovers { remove, keep };
  explicit AtomicFile(std::string path, Leftovers leftovers = Leftovers::remove);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // The path to write to, for libraries that open files themselves (HDF5).
  const std::string& temporary_path() const { return temporary_; }
  // The Error names the target and the system's reason (no space, no permission).
  void write(const void* bytes, size_t count);
  void commit();

 private:
  void close();
  std::string path_, temporary_;
  int descriptor_ = -1;
  bool committed_ = false;
};

void write_file_atomically(const std::string& path, const std::string& content,
                           AtomicFile::Leftovers leftovers = AtomicFile::Leftovers::remove);

}  // namespace crema

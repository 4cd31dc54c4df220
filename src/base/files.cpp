#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace crema {

bool file_exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool folder_exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string read_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path, ": cannot open: ", std::strerror(errno));
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = read(descriptor, buffer, sizeof(buffer));
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      const int reason = errno;
      close(descriptor);
      fail(path, ": cannot read: ", std::strerror(reason));
    }
    content.append(buffer, static_cast<size_t>(got));
  }
  close(descriptor);
  return content;
}

std::string find_file(const std::string& path, const std::string& folder) {
  if (path.empty() || path[0] == '/' || file_exists(path) || folder.empty()) return path;
  const std::string beside = folder + "/" + path;
  return file_exists(beside) ? beside : path;
}

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(cat(path_, ".tmp.", getpid())) {
  descriptor_ = open(temporary_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(path_, ": cannot write: ", std::strerror(errno));
}

AtomicFile::~AtomicFile() {
  close();
  if (!committed_) unlink(temporary_.c_str());
}

void AtomicFile::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void AtomicFile::write(const void* bytes, size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::write(descriptor_, at, count);
    if (done < 0) {
      if (errno == EINTR) continue;
      fail(path_, ": cannot write: ", std::strerror(errno));
    }
    at += done;
    count -= static_cast<size_t>(done);
  }
}

void AtomicFile::commit() {
  if (fsync(descriptor_) != 0) fail(path_, ": cannot write: ", std::strerror(errno));
  close();
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    fail(path_, ": cannot write: ", std::strerror(errno));
  committed_ = true;
  // The rename itself must reach the disk, or a power cut may still lose the new name.
  const int folder = open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    ::close(folder);
  }
}

void write_file_atomically(const std::string& path, const std::string& content) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit();
}

}  // namespace crema

#include "base/random_access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"

namespace crema {

RandomAccessFile::RandomAccessFile(std::string path) : path_(std::move(path)) {
  require_regular(path_);
  // Non-blocking: if a pipe has replaced the file meanwhile, opening it would wait for a writer.
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(path_, ": cannot open: ", std::strerror(errno));
  struct stat info;
  if (fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(descriptor_);
    fail(path_, ": is not a regular file");
  }
  size_ = static_cast<uint64_t>(info.st_size);
}

RandomAccessFile::~RandomAccessFile() { close(descriptor_); }

size_t RandomAccessFile::read(uint64_t offset, void* bytes, size_t count) const {
  size_t done = 0;
  while (done < count) {
    const ssize_t got = pread(descriptor_, static_cast<char*>(bytes) + done, count - done,
                              static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      fail(path_, ": cannot read: ", std::strerror(errno));
    }
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace crema

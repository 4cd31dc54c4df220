#include "base/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace crema {

int AppendFile::open() {
  if (file_ >= 0) return 0;
  if (path_.empty()) return EBADF;
  file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  return file_ < 0 ? errno : 0;
}

void AppendFile::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

// If the file has a different size by now, another program has appended to it; its records stay.
int AppendFile::remove_half() {
  if (half_ == 0) return 0;
  struct stat info;
  if (fstat(file_, &info) != 0) return errno;
  if (S_ISREG(info.st_mode) && info.st_size == half_end_ &&
      ftruncate(file_, half_end_ - static_cast<long long>(half_)) != 0)
    return errno;
  half_ = 0;
  return 0;
}

int AppendFile::append(std::string_view record) {
  int problem = open();
  if (problem == 0) problem = remove_half();
  size_t done = 0;
  while (problem == 0 && done < record.size()) {
    const ssize_t count = ::write(file_, record.data() + done, record.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      problem = errno;
    } else if (count == 0) {
      problem = ENOSPC;
    } else {
      done += static_cast<size_t>(count);
    }
  }
  if (problem == 0) return 0;
  if (done > 0) {
    struct stat info;
    half_ = done;
    half_end_ = fstat(file_, &info) == 0 ? static_cast<long long>(info.st_size) : -1;
    remove_half();
  }
  if (!path_.empty()) close();
  return problem;
}

}  // namespace crema

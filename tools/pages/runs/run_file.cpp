#include "tools/pages/runs/run_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"

namespace crema {

namespace {

// Whether users other than this one, root and a group can replace it or its content.
bool is_others(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return true;
  const bool all_may_write = (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0;
  return all_may_write || (status.st_uid != 0 && status.st_uid != geteuid());
}

// Opens a path component by component, because O_NOFOLLOW only concerns the last one. -1 with
// errno. `own` becomes false if a component belongs to others.
int open_without_links(const std::string& path, int flags, bool* own = nullptr) {
  constexpr int kFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int folder = open(path[0] == '/' ? "/" : ".", kFolder);
  size_t at = 0;
  while (folder >= 0) {
    if (own && is_others(folder)) *own = false;
    at = path.find_first_not_of('/', at);
    const size_t end = std::min(path.find('/', at), path.size());
    if (at == std::string::npos) break;  // the path is that of a folder: "/"
    const std::string name = path.substr(at, end - at);
    const bool last = path.find_first_not_of('/', end) == std::string::npos;
    errno = ELOOP;
    const int next = name == ".." ? -1
                                  : openat(folder, name.c_str(),
                                           last ? flags | O_NOFOLLOW | O_CLOEXEC : kFolder, 0644);
    const int reason = errno;
    close(folder);
    errno = reason;
    if (last || next < 0) return next;
    folder = next;
    at = end;
  }
  if (folder >= 0) close(folder);
  errno = EISDIR;
  return -1;
}

// Checks an entry without opening it.
bool look_at(const std::string& path, struct stat* status) {
  const int file = open_without_links(path, O_PATH);
  if (file < 0) return false;
  const bool known = fstat(file, status) == 0;
  close(file);
  return known;
}

}  // namespace

RunFile::RunFile(const std::string& path)
    // Non-blocking: a FIFO without a writer would wait forever.
    : own_(true), descriptor_(open_without_links(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &own_)) {
  struct stat status {};
  if (!is_open()) return;
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(std::exchange(descriptor_, -1));
    return;
  }
  size_ = static_cast<uint64_t>(status.st_size);
  number_ = status.st_ino;
  own_ = own_ && !is_others(descriptor_);
}

RunFile::~RunFile() {
  if (is_open()) close(descriptor_);
}

std::string RunFile::read(uint64_t from, size_t most) const {
  std::string text;
  if (!is_open() || from >= size_) return text;
  text.resize(std::min<uint64_t>(most, size_ - from));
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got =
        pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

std::string text_of_run_file(const std::string& path, size_t most) {
  const RunFile file(path);
  std::string text = file.size() > most ? "" : file.read(0, most);
  if (starts_with(text, "\xEF\xBB\xBF")) text.erase(0, 3);  // as some editors begin
  return text;
}

std::string end_of_run_file(const std::string& path, size_t most) {
  const RunFile file(path);
  if (file.size() <= most) return file.read(0, most);
  const std::string text = file.read(file.size() - most, most);
  const size_t line = text.find('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

bool is_run_file(const std::string& path) {
  struct stat status {};
  return look_at(path, &status) && S_ISREG(status.st_mode);
}

std::time_t changed_in_run(const std::string& path) {
  struct stat status {};
  return look_at(path, &status) ? status.st_mtime : 0;
}

std::vector<std::string> names_in_run(const std::string& folder, size_t most) {
  std::vector<std::string> names;
  const int descriptor = open_without_links(folder, O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(
      descriptor < 0 ? nullptr : fdopendir(descriptor), closedir);
  if (!entries) {
    if (descriptor >= 0) close(descriptor);
    return names;
  }
  while (names.size() < most) {
    const dirent* entry = readdir(entries.get());
    if (!entry) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void make_run_file(const std::string& path) {
  const int file = open_without_links(path, O_WRONLY | O_CREAT | O_EXCL);
  if (file < 0 && errno != EEXIST) fail(path, ": cannot write: ", std::strerror(errno));
  if (file >= 0) close(file);
}

}  // namespace crema

#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/temporary.h"

namespace crema {

namespace {

[[noreturn]] void refuse(const std::string& path, const char* what, int reason) {
  throw FileError(cat(path, ": ", what, ": ", std::strerror(reason)));
}

// Links in a circle lead to nothing, as those to a missing file do.
bool means_absent(int reason) { return reason == ENOENT || reason == ENOTDIR || reason == ELOOP; }

// False when nothing is there.
bool look_at(const std::string& path, struct stat* info) {
  if (stat(path.c_str(), info) == 0) return true;
  if (!means_absent(errno)) refuse(path, "cannot tell whether it exists", errno);
  return false;
}

}  // namespace

bool file_exists(const std::string& path) {
  struct stat info;
  return look_at(path, &info);
}

bool folder_exists(const std::string& path) {
  struct stat info;
  return look_at(path, &info) && S_ISDIR(info.st_mode);
}

std::vector<std::string> list_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) refuse(path, "cannot list this folder", errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  if (errno != 0) refuse(path, "cannot list this folder", errno);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> list_folder_if_exists(const std::string& path) {
  return folder_exists(path) ? list_folder(path) : std::vector<std::string>();
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

namespace {

// A file descriptor that closes itself.
struct Descriptor {
  int number;
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

const char* kind_of(mode_t mode) {
  return S_ISDIR(mode)    ? "a folder"
         : S_ISFIFO(mode) ? "a FIFO"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

// True for a path that names an open descriptor of this process, such as <(...) or /dev/stdin: the
// other end is open already.
bool names_descriptor(const std::string& path) {
  return path == "/dev/stdin" || starts_with(path, "/dev/fd/") ||
         starts_with(path, "/proc/self/fd/");
}

[[noreturn]] void fail_for_kind(const std::string& path, mode_t mode) {
  fail(path, ": is ", kind_of(mode), ", not a regular file", what_it_is(file_kind(path)),
       S_ISFIFO(mode) ? "; what a command prints is read as <(command) or /dev/stdin" : "");
}

[[noreturn]] void fail_for_size(const std::string& path, size_t maximum) {
  fail(path, ": is larger than ", size_text(maximum), ", the most that is read of such a file");
}

}  // namespace

std::string read_file(const std::string& path, size_t maximum) {
  // Non-blocking: a FIFO without a writer would block the program forever.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0) {
    if (means_absent(errno)) fail(path, ": cannot open: ", std::strerror(errno));
    refuse(path, "cannot open", errno);
  }
  struct stat info;
  if (fstat(file.number, &info) != 0) refuse(path, "cannot read", errno);
  const bool pipe = S_ISFIFO(info.st_mode) && names_descriptor(path);
  if (!S_ISREG(info.st_mode) && !pipe) fail_for_kind(path, info.st_mode);
  if (pipe) fcntl(file.number, F_SETFL, fcntl(file.number, F_GETFL) & ~O_NONBLOCK);
  // Files of /proc report a size of 0, and any file may grow: read until the end of file.
  std::string content;
  const size_t expected = pipe ? 0 : static_cast<size_t>(info.st_size);
  if (expected > maximum) fail_for_size(path, maximum);
  content.reserve(expected);
  char buffer[1 << 16];
  while (const ssize_t got = read(file.number, buffer, sizeof(buffer))) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(path, "cannot read", errno);
    content.append(buffer, static_cast<size_t>(got));
    if (content.size() > maximum) fail_for_size(path, maximum);
  }
  return content;
}

std::string read_text(const std::string& path, size_t maximum) {
  constexpr size_t kLookedAt = 64 << 10;
  std::string text = read_file(path, maximum);
  if (starts_with(text, "\xEF\xBB\xBF")) text.erase(0, 3);
  if (starts_with(text, "\xFF\xFE") || starts_with(text, "\xFE\xFF"))
    fail(path, ": is text in UTF-16; save it as UTF-8");
  // The parser would only complain about the first line.
  if (std::string_view(text).substr(0, kLookedAt).find('\0') != std::string_view::npos) {
    const FileKind kind = file_kind(path);
    require(kind.what.empty() || kind.what == kUnknownKind, path, ": is not a text",
            what_it_is(kind));
  }
  return text;
}

void require_regular(const std::string& path) {
  struct stat info;
  if (look_at(path, &info) && !S_ISREG(info.st_mode)) fail_for_kind(path, info.st_mode);
}

void require_readable(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0 && means_absent(errno)) return;
  struct stat info;
  if (file.number < 0 || fstat(file.number, &info) != 0) refuse(path, "cannot open", errno);
  char byte;
  for (const off_t at : {off_t{0}, info.st_size - 1})
    if (at >= 0 && S_ISREG(info.st_mode) && pread(file.number, &byte, 1, at) < 0)
      refuse(path, "cannot read", errno);
}

std::string find_file(const std::string& path, const std::string& folder) {
  if (path.empty() || path[0] == '/' || file_exists(path)) return path;
  for (std::string at = folder; !at.empty(); at.erase(std::min(at.rfind('/'), at.size()))) {
    const std::string found = at + "/" + path;
    if (file_exists(found)) return found;
    if (at.find('/') == std::string::npos) break;
  }
  return path;
}

AtomicFile::AtomicFile(std::string path, Leftovers leftovers) : path_(std::move(path)) {
  struct stat info;
  // Replacing /dev/null would turn it into a regular file for everyone.
  require(!look_at(path_, &info) || S_ISREG(info.st_mode), path_,
          ": cannot write: this is not a regular file");
  if (leftovers == Leftovers::remove)
    remove_leftovers(folder_of(path_), TemporaryEntry::Kind::file,
                     path_.substr(path_.rfind('/') + 1));
  TemporaryEntry entry = make_temporary(path_, TemporaryEntry::Kind::file);
  temporary_ = std::move(entry.path);
  descriptor_ = entry.descriptor;
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
  // The lock is held until the file has its final name, so that nothing removes it as a leftover.
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    fail(path_, ": cannot write: ", std::strerror(errno));
  close();
  committed_ = true;
  // Syncs the folder too: otherwise a power failure may still lose the new name.
  const int folder = open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    ::close(folder);
  }
}

void write_file_atomically(const std::string& path, const std::string& content,
                           AtomicFile::Leftovers leftovers) {
  AtomicFile file(path, leftovers);
  file.write(content.data(), content.size());
  file.commit();
}

}  // namespace crema

#include "base/temporary.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/system.h"

namespace crema {
namespace {

using Kind = TemporaryEntry::Kind;

// TARGET.tmp.HOST-RANDOM, with HOST and RANDOM in hexadecimal digits.
constexpr const char* kMark = ".tmp.";
constexpr int kHostDigits = 8, kRandomDigits = 16;
// Characters kept from the target's name, so that the whole name has at most 255 bytes.
constexpr size_t kMaxOfGoal = 200;
constexpr int kTries = 100;
constexpr time_t kSeconds = 3600;

// A short hash of this machine's name.
std::string host() {
  uint32_t hash = 0x811C9DC5u;
  for (const char c : host_name()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
  return hex_of(hash, kHostDigits);
}

std::string new_path(const std::string& goal) {
  uint64_t number = 0;
  require(getrandom(&number, sizeof number, 0) == sizeof number, goal,
          ": cannot write: the system gives no random numbers");
  const size_t name = goal.rfind('/') + 1;  // npos + 1 is 0
  return cat(goal.substr(0, name), goal.substr(name, kMaxOfGoal), kMark, host(), "-",
             hex_of(number, kRandomDigits));
}

enum class Locked { yes, no, impossible };

Locked lock(int descriptor) {
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Locked::no;
    if (errno != EINTR) return Locked::impossible;
  }
  return Locked::yes;
}

// True when the path still names this open entry.
bool lies_at(int descriptor, const std::string& path) {
  struct stat mine, there;
  return fstat(descriptor, &mine) == 0 && lstat(path.c_str(), &there) == 0 &&
         mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

int make(const std::string& path, Kind kind) {
  if (kind == Kind::file)
    return open(path.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0666);
  if (mkdir(path.c_str(), 0777) != 0) return -1;
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) {
    rmdir(path.c_str());
    errno = errno == ENOENT ? EEXIST : errno;  // removed as a leftover meanwhile: try another name
  }
  return descriptor;
}

bool is_hex(const std::string& text) {
  return text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The host in an entry's name; "" when the name has another form.
std::string host_in(const std::string& entry, const std::string& goal) {
  constexpr size_t kBehind = kHostDigits + 1 + kRandomDigits;
  const size_t mark = entry.rfind(kMark);
  if (mark == std::string::npos) return "";
  const std::string behind = entry.substr(mark + std::strlen(kMark));
  if (behind.size() != kBehind || behind[kHostDigits] != '-') return "";
  const std::string host = behind.substr(0, kHostDigits);
  const bool mine = is_hex(host) && is_hex(behind.substr(kHostDigits + 1)) &&
                    (goal.empty() || entry.substr(0, mark) == goal.substr(0, kMaxOfGoal));
  return mine ? host : "";
}

// The last modification time of a file, or of a folder and its entries.
time_t last_write(const std::string& path, Kind kind) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return 0;
  time_t last = info.st_mtime;
  if (kind == Kind::file) return last;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    last = std::max(last, last_write(entry.path(), Kind::file));
  return last;
}

// Removes the entry if no process holds it any more; true if it is gone.
bool remove_leftover(const std::string& path, Kind kind, bool made_here) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return false;
  if (kind == Kind::file ? !S_ISREG(info.st_mode) : !S_ISDIR(info.st_mode)) return false;
  // Network file systems lock only files that are open for writing.
  const int how = kind == Kind::file ? O_RDWR | O_NONBLOCK : O_RDONLY | O_DIRECTORY;
  const int descriptor = open(path.c_str(), how | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return false;
  const Locked locked = lock(descriptor);
  bool removed = false;
  std::error_code failed;
  const bool old = std::time(nullptr) - last_write(path, kind) > kSeconds;
  if (locked != Locked::no && ((locked == Locked::yes && made_here) || old) &&
      lies_at(descriptor, path))
    removed = std::filesystem::remove_all(path, failed) > 0 && !failed;
  close(descriptor);
  return removed;
}

}  // namespace

TemporaryEntry make_temporary(const std::string& goal, Kind kind) {
  for (int i = 0; i < kTries; ++i) {
    const std::string path = new_path(goal);
    const int descriptor = make(path, kind);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) fail(goal, ": cannot write: ", std::strerror(errno));
    // Between creation and locking, another process may have removed it as a leftover.
    if (lock(descriptor) != Locked::no && lies_at(descriptor, path)) return {path, descriptor};
    // Its name is unpredictable, so if it is still there it is still ours.
    kind == Kind::file ? unlink(path.c_str()) : rmdir(path.c_str());
    close(descriptor);
  }
  fail(goal, ": cannot write: every temporary file for it vanishes at once");
}

std::vector<std::string> remove_leftovers(const std::string& folder, Kind kind,
                                          const std::string& name) {
  std::vector<std::string> found, removed;
  try {
    found = list_folder(folder);  // unlike the iterators of libstdc++ it can be out of memory
  } catch (const FileError&) {    // a folder that cannot be listed keeps its leftovers
  }
  for (const std::string& entry : found) {
    const std::string made_on = host_in(entry, name);
    if (made_on.empty()) continue;
    const std::string path = cat(folder, "/", entry);
    if (remove_leftover(path, kind, made_on == host())) removed.push_back(path);
  }
  return removed;
}

}  // namespace crema

#include "comm/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/hmac.h"
#include "base/system.h"
#include "comm/control_sockets.h"

namespace crema {
namespace {

// 256 bits, in hexadecimal digits.
std::string new_token() { return random_token() + random_token(); }
constexpr size_t kTokenSize = 64;

const char* const kInstead =
    "; or set CREMA_TOKEN to the same secret in the environment of all ranks";

// "" if this user alone can read and write the open file.
std::string problem_of(int file) {
  struct stat info;
  if (fstat(file, &info) != 0) return std::strerror(errno);
  if (!S_ISREG(info.st_mode)) return "it is not a regular file";
  if (info.st_uid != geteuid()) return "it belongs to another user";
  if ((info.st_mode & 077) != 0) return "other users have access to it";
  return "";
}

// Reads at most `count` bytes; -1 and errno if that fails.
ssize_t read_all(int file, char* to, size_t count) {
  size_t all = 0;
  while (all < count) {
    const ssize_t got = read(file, to + all, count - all);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    all += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(all);
}

}  // namespace

std::string token_file_of(const Launch& launch) {
  const std::string folder = user_cache_folder();
  require(!folder.empty(), "the ranks share their token in a file below the home folder, but ",
          "neither HOME nor XDG_CACHE_HOME is set", kInstead);
  // Ranks on one machine use its loopback: another machine may have the same job, and the same home.
  const std::string job = launch.all_here ? cat(launch.job, " on ", host_name()) : launch.job;
  std::string digits;
  for (const unsigned char byte : sha256(job)) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return cat(folder, "/", launch.launcher, "-", digits.substr(0, 32), ".token");
}

TokenFile::TokenFile(std::string path) : path_(std::move(path)), token_(new_token()) {
  std::error_code ignored;  // the error on opening says more
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  // Only the rename is visible to the other ranks. The name cannot be guessed, so an attacker
  // cannot prepare it.
  const std::string temporary = cat(path_, ".", random_token());
  std::string problem;
  {
    const Socket file(
        open(temporary.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600));
    if (!file)
      fail(path_, ": the ranks' token cannot be written: ", std::strerror(errno),
           "; set XDG_CACHE_HOME to a folder that all ranks share", kInstead);
    problem = problem_of(file.get());
    errno = 0;
    if (problem.empty() &&
        (::write(file.get(), token_.data(), token_.size()) != static_cast<ssize_t>(token_.size()) ||
         fsync(file.get()) != 0))
      problem = errno != 0 ? std::strerror(errno) : "it was cut off";
  }
  if (problem.empty() && rename(temporary.c_str(), path_.c_str()) != 0)
    problem = std::strerror(errno);
  if (problem.empty()) return;
  unlink(temporary.c_str());
  fail(path_, ": the ranks' token cannot be written: ", problem,
       "; set XDG_CACHE_HOME to another folder that all ranks share", kInstead);
}

TokenFile::~TokenFile() {
  std::string problem;
  if (read_token_file(path_, &problem) == token_) unlink(path_.c_str());
}

std::string read_token_file(const std::string& path, std::string* problem) {
  // A FIFO must not block.
  const Socket file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) {
    *problem = errno == ENOENT  ? "there is no such file"
               : errno == ELOOP ? "it is a symbolic link"
                                : std::strerror(errno);
    return "";
  }
  *problem = problem_of(file.get());
  if (!problem->empty()) return "";
  std::array<char, kTokenSize + 1> bytes{};
  const ssize_t count = read_all(file.get(), bytes.data(), bytes.size());
  if (count < 0) *problem = std::strerror(errno);
  if (count >= 0 && static_cast<size_t>(count) != kTokenSize) *problem = "it holds no token";
  return problem->empty() ? std::string(bytes.data(), kTokenSize) : "";
}

}  // namespace crema

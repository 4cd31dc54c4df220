// Common code of the data tests: the reference files.
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <map>

#include "support.h"

// At the start of a test that reads or writes image files.
#ifdef CREMA_OPENCV
#define NEEDS_IMAGES() static_cast<void>(0)
#else
#define NEEDS_IMAGES() GTEST_SKIP() << "built without OpenCV"
#endif

namespace crema::tests {

// The files of a folder, by name.
inline std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    found[entry.path().filename()] = read_file(entry.path());
  return found;
}

// While it lives, no file of this process grows beyond so many bytes: a full disk without one.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

inline std::string formats() { return std::string(CREMA_TEST_DATA) + "/goldens/formats"; }

}  // namespace crema::tests

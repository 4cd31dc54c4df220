// What the tests of data share: the reference files, folders that vanish, a log that remembers.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"

// At the start of a test that reads or writes image files.
#ifdef CREMA_OPENCV
#define NEEDS_IMAGES() static_cast<void>(0)
#else
#define NEEDS_IMAGES() GTEST_SKIP() << "built without OpenCV"
#endif

namespace crema::tests {

inline std::string formats() { return std::string(CREMA_TEST_DATA) + "/goldens/formats"; }

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "crema_data_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  // LevelDB writes into folders that it opens: the reference files are copied first.
  std::string copy_of(const std::string& folder) const {
    const std::string to = *this / std::filesystem::path(folder).filename().string();
    if (!std::filesystem::exists(to))
      std::filesystem::copy(folder, to, std::filesystem::copy_options::recursive);
    return to;
  }

 private:
  std::string path_;
};

struct Lines : Log {
  void write(Severity severity, const std::source_location&, std::string_view line) override {
    const std::lock_guard<std::mutex> lock(mutex);
    (severity == Severity::info ? info : problems).emplace_back(line);
  }
  std::mutex mutex;
  std::vector<std::string> info, problems;
};

// The message of the Error that the call throws; a failure when it throws none.
template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

// EXPECT that `text` contains `part`.
inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

}  // namespace crema::tests

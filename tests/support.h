// Common code for tests of several floors: vanishing folders, a recording log, and error messages.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <source_location>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"

namespace crema::tests {

// A folder that vanishes with its object.
class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::temp_directory_path() / "crema_test_XXXXXX").string();
    require(mkdtemp(path_.data()) != nullptr, "cannot make the temporary folder ", path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  bool has(const std::string& name) const { return std::filesystem::exists(file(name)); }
  std::string read(const std::string& name) const { return read_file(file(name)); }
  // Makes the folders on the way.
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(file(name)).parent_path());
    std::ofstream(file(name), std::ios::binary) << content;
  }
  // The entries directly in it, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
  // Copies a file or folder of tests/goldens to `to` unless that exists; returns its path. For
  // tests that write next to it.
  std::string copy_golden(const std::string& from, const std::string& to) const {
    if (!has(to)) {
      std::filesystem::copy(std::filesystem::path(CREMA_TEST_DATA) / "goldens" / from, file(to),
                            std::filesystem::copy_options::recursive);
    }
    return file(to);
  }

 private:
  std::string path_;
};

// Keeps every line, and again by severity.
class Lines : public Log {
 public:
  void write(Severity severity, const std::source_location&, std::string_view line) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    all.emplace_back(line);
    (severity == Severity::info      ? infos
     : severity == Severity::warning ? warnings
                                     : errors)
        .emplace_back(line);
  }
  bool has(const std::string& line) const {
    return std::find(all.begin(), all.end(), line) != all.end();
  }
  std::vector<std::string> all, infos, warnings, errors;

 private:
  std::mutex mutex_;
};

// The message of the Error that the call throws; a failure of the test when it throws none.
template <typename Call>
std::string error_of(const Call& call,
                     const std::source_location& where = std::source_location::current()) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line())) << "no Error was thrown";
  return "";
}

// EXPECT that `text` contains `part`.
inline void expect_part(const std::string& text, const std::string& part,
                        const std::source_location& where = std::source_location::current()) {
  if (text.find(part) != std::string::npos) return;
  ADD_FAILURE_AT(where.file_name(), static_cast<int>(where.line()))
      << "\"" << part << "\" is not in: " << text;
}

}  // namespace crema::tests

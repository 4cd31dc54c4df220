// RecordFile: what a reader of events writes while a training runs. A disk that is full or a network
// drive that is gone for some time ends neither the training nor the file: records wait in memory.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/append_file.h"
#include "base/log.h"

namespace crema {

// Warns when a file cannot be written and says when it can again; not more than once a minute.
class WriteWarnings {
 public:
  explicit WriteWarnings(Log& log) : log_(log) {}
  // `problem`: which file, and why.
  void failed(const std::string& problem);
  // `what`: "" or what is missing.
  void works_again(const std::string& path, const std::string& what);
  Log& log() { return log_; }

 private:
  Log& log_;
  bool warned_ = false;
  std::chrono::steady_clock::time_point quiet_until_;
};

// Removes a last line that was cut off by a kill.
void drop_cut_line(const std::string& path);

class RecordFile {
 public:
  // `find_path`: called with the first record, and again as long as it throws.
  RecordFile(Log& log, std::function<std::string()> find_path)
      : warnings_(log), find_path_(std::move(find_path)) {}
  RecordFile(Log& log, std::string path)
      : RecordFile(log, [path = std::move(path)] { return path; }) {}
  // Warns if records are missing.
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // At most so much waits in memory; the oldest records go first.
  static constexpr size_t kMostWaiting = size_t{4} << 20;
  enum class Keep {
    if_small,
    always,  // without it the file would be wrong: it says that others are outdated
  };
  void add(std::string record, Keep keep = Keep::if_small);
  bool all_written() const { return waiting_.empty(); }

 private:
  struct Waiting {
    std::string record;
    Keep keep;
  };
  // "", or why the first of those that wait cannot be written.
  std::string write_first();
  void drop_oldest();

  WriteWarnings warnings_;
  std::function<std::string()> find_path_;
  std::optional<AppendFile> file_;
  std::deque<Waiting> waiting_;
  size_t waiting_bytes_ = 0, dropped_ = 0;
  bool broken_ = false;  // the last attempt failed
};

}  // namespace crema

// The runs below a folder, read on as they grow.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "solver/readers/metrics_file.h"
#include "tools/pages/runs/found_runs.h"

namespace crema {

struct WatchedRun {
  std::string name;  // the way from the folder, with the run's id where a file holds several
  std::string folder;
  const Run* run = nullptr;  // valid until the next refresh()
  uint64_t version = 0;      // grows with the file
  std::string error{};       // why the rest of its file is not read; "": it is
};

class WatchedRuns {
 public:
  explicit WatchedRuns(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  // Looks for new runs and reads additions to the known ones. Long files are read in several turns,
  // so that none delays the others.
  void refresh();
  // The newest first.
  std::vector<WatchedRun> runs() const;
  // Null: there is no run of this name. Names are compared with those of runs(), never looked up on
  // the disk.
  static const WatchedRun* find(const std::vector<WatchedRun>& runs, const std::string& name);
  // The problems of files, one message each.
  std::vector<std::string> errors() const;

 private:
  struct File {
    explicit File(const std::string& path);
    FoundRuns where;
    RunsInText text;
    uint64_t number = 0, bytes = 0, version = 0;  // of the inode; read so far
    std::string error;
    bool behind = false;  // there is more than was read
  };
  void read_on(File& file, size_t* budget);
  void search();

  using Clock = std::chrono::steady_clock;

  std::string folder_;
  Clock::time_point next_search_{};  // a large folder is not searched at every request
  bool searched_whole_ = true;
  size_t lines_ = 0;                   // of all files
  std::map<std::string, File> files_;  // by the path of metrics.jsonl
};

}  // namespace crema

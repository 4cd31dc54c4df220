#include "tools/pages/watch/watched_runs.h"

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "base/error.h"
#include "tools/pages/runs/run_file.h"

namespace crema {

namespace {

// Limit for all files together, which need about a gigabyte of memory then.
constexpr size_t kMostLines = 4'000'000;
// Limits of a file, of a file per turn, of all per turn, and per read.
constexpr uint64_t kMostBytes = uint64_t{128} << 20;
constexpr size_t kMostOfFile = size_t{16} << 20, kMostOfTurn = size_t{64} << 20,
                 kPart = size_t{256} << 10;

// No training comes near these.
constexpr MetricsLimits kLimits = {
    .line = size_t{4} << 20, .lines = 1'000'000, .runs = 1000, .restarts = 200'000'000};

}  // namespace

WatchedRuns::File::File(const std::string& path) : text(path, kLimits) {}

void WatchedRuns::read_on(File& file, size_t* budget) {
  const RunFile input(file.where.folder + "/metrics.jsonl");
  if (!input.is_open()) return;
  // Another file, or a new beginning.
  if (input.number() != file.number || input.size() < file.bytes) {
    file.text = RunsInText(file.where.metrics, kLimits);
    file.number = input.number();
    file.bytes = 0;
    file.error.clear();
    ++file.version;
  }
  if (input.size() == file.bytes || !file.error.empty()) return;
  ++file.version;
  try {
    size_t of_file = std::min(kMostOfFile, *budget);
    while (of_file > 0 && file.bytes < input.size()) {
      const std::string added = input.read(file.bytes, std::min(kPart, of_file));
      if (added.empty()) break;
      file.bytes += added.size();
      of_file -= added.size();
      *budget -= added.size();
      require(file.bytes <= kMostBytes, file.where.metrics, ": has more than ",
              size_text(kMostBytes), "; the rest is not read");
      const size_t before = file.text.lines();
      file.text.add(added);
      lines_ += file.text.lines() - before;
      require(lines_ <= kMostLines, file.where.metrics, ": the runs below ", folder_,
              " have more than ", kMostLines, " lines; the rest is not read");
    }
  } catch (const Error& error) {
    file.error = error.what();
  } catch (const std::bad_alloc&) {
    file.error = file.where.metrics + ": there is not enough memory for it";
  }
  file.behind = file.error.empty() && file.bytes < input.size();
}

void WatchedRuns::search() {
  constexpr int kRest = 10;  // times as long as the search took
  const Clock::time_point begin = Clock::now();
  std::set<std::string> there;
  for (const FoundRuns& found : find_runs_below(folder_, &searched_whole_)) {
    files_.try_emplace(found.metrics, found.metrics).first->second.where = found;
    there.insert(found.metrics);
  }
  std::erase_if(files_, [&](const auto& entry) { return there.count(entry.first) == 0; });
  const Clock::time_point end = Clock::now();
  next_search_ = end + kRest * (end - begin);
}

void WatchedRuns::refresh() {
  if (Clock::now() >= next_search_) search();
  size_t budget = kMostOfTurn;
  lines_ = 0;
  for (const auto& entry : files_) lines_ += entry.second.text.lines();
  for (auto& entry : files_) read_on(entry.second, &budget);
}

std::vector<WatchedRun> WatchedRuns::runs() const {
  std::vector<std::pair<std::string, WatchedRun>> all;  // by when they were started
  for (const auto& [path, file] : files_) {
    const std::vector<Run>& runs = file.text.runs();
    for (const Run& run : runs) {
      const std::string name = runs.size() == 1 ? file.where.name : file.where.name + " " + run.id;
      all.emplace_back(run.identity("started"),
                       WatchedRun{name, file.where.folder, &run, file.version, file.error});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<WatchedRun> runs;
  for (auto& [started, run] : all) runs.push_back(std::move(run));
  return runs;
}

const WatchedRun* WatchedRuns::find(const std::vector<WatchedRun>& runs, const std::string& name) {
  const auto at = std::find_if(runs.begin(), runs.end(),
                               [&](const WatchedRun& run) { return run.name == name; });
  return at == runs.end() ? nullptr : &*at;
}

std::vector<std::string> WatchedRuns::errors() const {
  std::vector<std::string> errors;
  for (const auto& entry : files_) {
    const File& file = entry.second;
    if (!file.error.empty()) errors.push_back(file.error);
    if (file.behind)
      errors.push_back(cat(file.where.metrics, ": ", size_text(file.bytes),
                           " are read so far; the page shows more in a few seconds"));
  }
  if (!searched_whole_)
    errors.push_back(folder_ + ": has too many folders; not all of them are searched for runs");
  return errors;
}

}  // namespace crema

#include "tools/pages/watched_runs.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/error.h"

namespace crema {

void WatchedRuns::read_on(File& file) {
  const std::string& path = file.where.metrics;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (status.st_ino != file.number || size < file.bytes) {  // another file, or a new beginning
    file.text = RunsInText(path);
    file.number = status.st_ino;
    file.bytes = 0;
    file.error.clear();
    ++file.version;
  }
  if (size == file.bytes || !file.error.empty()) return;
  std::ifstream input(path, std::ios::binary);
  input.seekg(static_cast<std::streamoff>(file.bytes));
  std::string added(size - file.bytes, '\0');
  input.read(added.data(), static_cast<std::streamsize>(added.size()));
  added.resize(static_cast<size_t>(input.gcount()));
  file.bytes += added.size();
  ++file.version;
  try {
    file.text.add(added);
  } catch (const Error& error) {
    file.error = error.what();
  }
}

void WatchedRuns::search() {
  constexpr int kRest = 10;  // times as long as the search took
  const Clock::time_point begin = Clock::now();
  std::set<std::string> there;
  for (const FoundRuns& found : find_runs_below(folder_)) {
    files_.try_emplace(found.metrics, found.metrics).first->second.where = found;
    there.insert(found.metrics);
  }
  std::erase_if(files_, [&](const auto& entry) { return there.count(entry.first) == 0; });
  const Clock::time_point end = Clock::now();
  next_search_ = end + kRest * (end - begin);
}

void WatchedRuns::refresh() {
  if (Clock::now() >= next_search_) search();
  for (auto& entry : files_) read_on(entry.second);
}

std::vector<WatchedRun> WatchedRuns::runs() const {
  std::vector<WatchedRun> all;
  for (const auto& [path, file] : files_) {
    const std::vector<Run>& runs = file.text.runs();
    for (const Run& run : runs) {
      const std::string name = runs.size() == 1 ? file.where.name : file.where.name + " " + run.id;
      all.push_back({name, file.where.folder, path, &run, file.version});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const WatchedRun& a, const WatchedRun& b) {
    return a.run->identity("started") > b.run->identity("started");
  });
  return all;
}

const WatchedRun* WatchedRuns::find(const std::vector<WatchedRun>& runs, const std::string& name) {
  const auto at = std::find_if(runs.begin(), runs.end(),
                               [&](const WatchedRun& run) { return run.name == name; });
  return at == runs.end() ? nullptr : &*at;
}

std::vector<std::string> WatchedRuns::errors() const {
  std::vector<std::string> errors;
  for (const auto& entry : files_) {
    if (!entry.second.error.empty()) errors.push_back(entry.second.error);
  }
  return errors;
}

}  // namespace crema

// Finds runs on the disk: metrics.jsonl files, and run folders from -run.
#pragma once

#include <string>
#include <vector>

namespace crema {

struct FoundRuns {
  std::string name;     // the path given, or, of a folder with several, the way from there
  std::string folder;   // where metrics.jsonl is, without links: for tools/pages/runs/run_file.h
  std::string metrics;  // its path as the user would write it
};

// A metrics file, a folder with one, or a folder with such folders, a few levels deep. The path may be
// a link; those that are found below it are not followed, be they folders or files. Sorted by name,
// NAME-2 before NAME-10. Error when nothing is there.
std::vector<FoundRuns> find_runs(const std::string& path);
// The same for a folder only; empty if there is nothing in it yet. `whole` becomes false if it has
// too many folders to search all of them.
std::vector<FoundRuns> find_runs_below(const std::string& folder, bool* whole = nullptr);

}  // namespace crema

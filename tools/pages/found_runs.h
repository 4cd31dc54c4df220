// Finds trainings on the disk: metrics.jsonl files, and run folders as -run makes them.
#pragma once

#include <string>
#include <vector>

namespace crema {

struct FoundRuns {
  std::string name;     // the path given, or, of a folder with several, the way from there
  std::string folder;   // where metrics.jsonl lies
  std::string metrics;  // its path
};

// A metrics file, a folder with one, or a folder with such folders, a few levels deep; links to
// folders are not followed. Sorted by name, NAME-2 before NAME-10. Error when nothing is there.
std::vector<FoundRuns> find_runs(const std::string& path);
// The same of a folder only; empty when there is nothing in it yet.
std::vector<FoundRuns> find_runs_below(const std::string& folder);

// A file of a run's folder, at most its last `most` bytes, from the beginning of a line on; "" where
// it cannot be read.
std::string end_of_file(const std::string& path, size_t most);

}  // namespace crema

// Selects which run in a metrics file a report is about, and checks whether weights and net belong
// to it.
#pragma once

#include <string>
#include <vector>

#include "net/net.h"
#include "solver/readers/metrics_file.h"

namespace crema {

// Identifies -model and -weights, for comparison with runs.
struct Trained {
  std::string net_text, parameters, weights;  // hashes, as in a "start"
};
// From `net` with its weights, which was built from `file`.
Trained trained_of(Net& net, const NetParameter& file);

struct ChosenRun {
  Run run;
  std::string why;                 // in words; "": it is the only one
  std::vector<std::string> notes;  // mismatches
};

// The run called `id` (a prefix suffices; Error if there is none). Without an id, the run of the
// weights, otherwise the last one. trained: null without -weights.
ChosenRun choose_run(const std::vector<Run>& runs, const std::string& id, const Trained* trained,
                     const std::string& path);

// Those that `list` names, separated by commas, or for "all" all, in the order of the file.
std::vector<Run> named_runs(const std::vector<Run>& runs, const std::string& list,
                            const std::string& path);

// Prints a table of all runs to stdout.
void print_runs(const std::vector<Run>& runs);

}  // namespace crema

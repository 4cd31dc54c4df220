// Which of the runs in a file of metrics a report is about, and whether weights and net are its
// own.
#pragma once

#include <string>
#include <vector>

#include "net/net.h"
#include "tools/metrics_file.h"

namespace crema {

// What -model and -weights are, to be held against runs.
struct Trained {
  std::string net_text, parameters, weights;  // hashes, as in a "start"
};
// `net` with its weights, as it was made of `file`.
Trained trained_of(Net& net, const NetParameter& file);

struct ChosenRun {
  Run run;
  std::string why;                 // in words; "": there is but one
  std::vector<std::string> notes;  // what does not fit together
};

// The run called `id` (its first letters suffice, Error when there is none); without one that to
// which the weights belong, else the last. trained: null without -weights.
ChosenRun choose_run(const std::vector<Run>& runs, const std::string& id, const Trained* trained,
                     const std::string& path);

// "net LeNet (lenet.prototxt), solver solver.prototxt, started 2026-11-23T09:00:00Z"; "" for a run
// that says nothing of itself.
std::string describe(const Run& run);

// A table of all runs on stdout.
void print_runs(const std::vector<Run>& runs);

}  // namespace crema

// The results of a sweep: a table to read, and a CSV file with everything.
#pragma once

#include <string>
#include <vector>

#include "solver/readers/metrics_file.h"
#include "tools/tune/sweep_plan.h"

namespace crema {

// How to compare runs; by the first test net.
struct SweepScore {
  std::string output;  // "": the first output of the tests, or without tests the loss
  enum class Better { by_name, larger, smaller } better = Better::by_name;
};

// The values of one output over a run.
struct SweepValue {
  std::string name;
  bool larger_is_better = false;
  double last = 0, best = 0;
  int64_t best_at = 0;  // iteration
};

// For the tests of net number `net`; without any, the training loss.
std::vector<SweepValue> values_of(const Run& run, int net, const SweepScore& score = {});

struct SweepResult {
  SweepRun run;
  int64_t iterations = 0;
  std::vector<SweepValue> values;  // the score first; none: nothing was measured yet
};

// From the metrics.jsonl in `folder`/NAME, if there is one.
SweepResult result_of(const SweepRun& run, const std::string& folder, const SweepScore& score);

// The best first, by the last value of the score; then those without one.
void sort_results(std::vector<SweepResult>* results);

// A row a run: number, settings, the values' last and best, state and message.
std::vector<std::vector<std::string>> table_of(const std::vector<SweepResult>& results);
std::string csv_of(const std::vector<SweepResult>& results);

}  // namespace crema

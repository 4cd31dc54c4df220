// The state of a run: whether it still runs, and its figures.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "tools/pages/runs/page_run.h"

namespace crema {

struct RunState {
  std::string word;  // running, ended, stopped (early), diverged, silent
  std::string text;  // "running", "stopped on request", "silent since 12:03"
  bool may_stop = false;
};

// For a run that may be running. now: seconds since 1970, as in file times.
RunState state_of(const PageRun& run, std::time_t now);
// For a finished one: its records, nothing about its process.
RunState recorded_state(const Run& run);
// A loss that is not finite ended it.
bool has_diverged(const Run& run);

// When it was first started, in local time; "": not recorded.
std::string started_text(const Run& run, std::time_t now);

// An output of a test net over the tests.
struct TestFigure {
  std::string name;
  double last = 0, best = 0;
  int64_t best_at = 0;  // iteration
};

struct RunFigures {
  int64_t iterations = 0;
  double seconds = 0;  // total of all its starts
  double loss = 0;     // the last in training; nan: none
  double speed = 0;    // iterations per second: the median of the last displays; nan: none
  double waiting = 0;  // fraction of the whole time; nan: none
  std::vector<TestFigure> tests{};
};

RunFigures figures_of(const Run& run);

// "1 h 02 min", "3.4 min", "12.1 s".
std::string duration(double seconds);

}  // namespace crema

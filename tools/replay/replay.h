// Computes iterations of a recorded run again and opens them up.
#pragma once

#include <string>
#include <vector>

#include "solver/replay/opened_iteration.h"
#include "solver/replay/record_check.h"
#include "tools/console/program_log.h"
#include "tools/replay/run_setting.h"

namespace crema {

struct ReplayRequest {
  int64_t first = 0, last = 0;  // iterations
  IterationOpener::Options open{};
};

struct Replayed {
  RecordedRun::Start start;
  std::vector<OpenedIteration> iterations;
  // The run's own iterations from the start on, with the plan that the run had.
  RecordCheck check;
  std::string diverged = {};  // the message with which the run ended there; "": it went on
};

// Keeps no files. Says how long it will take.
Replayed replay(ProgramLog& log, const RunSetting& setting, const ReplayRequest& request);

// "21 losses and 3 hashes of weights are those of the run, bit for bit", or where they begin to differ.
std::string proof_of(const Replayed& replayed, const std::vector<std::string>& parameters);

}  // namespace crema

// On from a state of a run to one of its iterations.
#pragma once

#include <cstdint>

#include "solver/solver.h"
#include "tools/replay/recorded_run.h"

namespace crema {

// A reader of the solver that counts how often it has gone back.
class RollbackCount : public EventReader {
 public:
  void read(const Event& event) override {
    if (std::holds_alternative<event::RolledBack>(event)) ++count;
  }
  int count = 0;
};

// Until the solver is about to begin this iteration. If the run went back on the way, to the one behind the
// last time; Error if the solver does not.
void advance(Solver& solver, int64_t iteration, const RecordedRun::Rollbacks& rollbacks,
             const RollbackCount& seen);

}  // namespace crema

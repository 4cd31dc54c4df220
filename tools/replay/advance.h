// Advance: goes on to an iteration on the way that the run has gone: by its rollbacks, to snapshots that may be gone.
#pragma once

#include <cstdint>
#include <vector>

#include "solver/solver.h"
#include "tools/replay/recorded_run.h"

namespace crema {

// Must be one of the solver's readers. The solver's snapshots go to its snapshot_prefix.
class Advance : public EventReader {
 public:
  // `rollbacks`: those between here and the iteration. Error if the solver does not diverge where the run did.
  void to(Solver& solver, int64_t iteration, const std::vector<RecordedRun::Rollback>& rollbacks);
  void read(const Event& event) override;

 private:
  size_t count_ = 0;  // rollbacks so far
};

}  // namespace crema

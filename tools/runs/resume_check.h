// -resume_check N: proves on a user's own net that a training which is stopped and resumed is the
// one that was not.
#pragma once

#include <functional>

#include "solver/solver.h"
#include "tools/program_log.h"

namespace crema {

// Trains `iterations` twice without a break; then once more, up to a snapshot in the middle, and on
// from there with a new solver and new nets; and compares weights and state. Everything is written
// to a temporary folder. Error says what differs first and by how much. `prepare` is called with
// each solver before it trains.
void check_resume(ProgramLog& log, Context& context, const SolverFile& file,
                  const SolverOptions& options, int iterations,
                  const std::function<void(Solver&)>& prepare);

}  // namespace crema

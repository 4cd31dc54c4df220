// -resume_check N: checks on a user's own net that a stopped and resumed run equals an
// uninterrupted one.
#pragma once

#include <functional>

#include "solver/solver.h"
#include "tools/console/program_log.h"

namespace crema {

// Trains `iterations` twice without interruption; then once more, up to a snapshot in the middle,
// and from there with a new solver and new nets; and compares weights and state. Everything is
// written to a temporary folder. Error names the first difference and its size. `prepare` is called
// with each solver before it trains.
void check_resume(ProgramLog& log, Context& context, const SolverFile& file,
                  const SolverOptions& options, int iterations,
                  const std::function<void(Solver&)>& prepare);

}  // namespace crema

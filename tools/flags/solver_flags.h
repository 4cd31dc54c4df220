// -solver for verbs other than train, and the device that it requests.
#pragma once

#include <memory>

#include "device/context.h"
#include "net/prototxt/prototxt.h"
#include "tools/console/program_log.h"
#include "tools/devices.h"

namespace crema {

// The file with -set applied. Error when -solver is missing.
using SolverFlags = FlagsOf<"solver", "set">;
SolverFile read_solver(ProgramLog& log, const SolverFlags& flags);

// The same with -model in place of its nets; of -model alone SGD, as most solvers have it. Error, with
// `needed`, when both are missing.
using SolverOrModelFlags = FlagsOf<"solver", "model", "set">;
SolverFile read_solver_or_model(ProgramLog& log, const SolverOrModelFlags& flags,
                                const char* needed);

// For -gpu, otherwise the solver's solver_mode and device_id, of which the first counts.
std::unique_ptr<Context> context_of(ProgramLog& log, const DeviceFlags& flags,
                                    const SolverFile& file);

// Reduces a solver to what affects the weights: no tests, no snapshots, no early stop.
void train_only(SolverParameter* solver);

}  // namespace crema

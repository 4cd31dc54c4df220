// What a training takes, before it begins.
#pragma once

#include <utility>

#include "net/memory_use.h"
#include "solver/fields/solver_nets.h"

namespace crema {

// Makes the training net, without its memory: an Error is what the training would refuse. Returns
// what net and update take in the precision of -precision, else the solver's, and the net's batch.
std::pair<MemoryKinds, int64_t> memory_of_training(Context& context, const SolverFile& file,
                                                   const NetSource& source);

}  // namespace crema

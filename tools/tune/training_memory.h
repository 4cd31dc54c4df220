// The memory of a run, before it begins.
#pragma once

#include <string>
#include <utility>

#include "net/plan/memory_use.h"
#include "solver/fields/solver_nets.h"

namespace crema {

// Makes the training net without allocating memory: throws the Error that training would. Returns
// the memory of net and update in `precision`, the value of -precision, and the net's batch.
std::pair<MemoryKinds, int64_t> memory_of_training(Context& context, const std::string& precision,
                                                   const SolverFile& file, const NetSource& source);

// Makes the nets that the solver tests, without allocating memory: throws the Error that training
// would.
void make_test_nets(Context& context, const std::string& precision, const SolverFile& file);

}  // namespace crema

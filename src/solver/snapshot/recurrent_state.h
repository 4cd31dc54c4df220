// What recurrent layers carry from one batch into the next, in snapshots.
#pragma once

#include <vector>

#include "net/net.h"
#include "proto/solver.pb.h"

namespace crema {

void store_recurrent(const std::vector<Net*>& nets, SolverState* state);
// A net for which the state has nothing, or something of another shape (it is older, or the batch
// has another size), begins with zeros, as a new one does; a warning says so.
void restore_recurrent(const SolverState& state, const std::vector<Net*>& nets);

}  // namespace crema

// What a training keeps, and what it checks beforehand, for the case that it diverges.
#pragma once

#include <vector>

#include "proto/solver.pb.h"

namespace crema {

struct SolverFile;

// What a run began with, in host memory: on_divergence: ROLLBACK goes back there as long as there is
// no snapshot.
struct RunStart {
  SolverState state;
  std::vector<char> weights;
};

// Error, with the position in the file, for values with which ROLLBACK or SKIP cannot work.
void check_divergence(const SolverFile& file);

}  // namespace crema

// Trains in written C files and in Crema with the same random batches, and compares the weights.
#pragma once

#include "net/prototxt/prototxt.h"
#include "tools/exchange/verify_c.h"

namespace crema {

struct VerifiedTraining {
  std::string problem;  // why the files could not be run; "": they were
  double difference =
      0;  // the largest one, as a share of the largest change of a parameter's values
};

// `solver`: with `training`, a net with Input layers, as its net. Error if the files cannot be compiled or
// run.
VerifiedTraining verify_c_training(const Net& training, const SolverFile& solver,
                                   const CheckedC& checked, int iterations);

}  // namespace crema

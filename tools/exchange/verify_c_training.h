// Trains in written C files and in Crema with the same random batches, and compares the weights.
#pragma once

#include "net/prototxt/prototxt.h"
#include "tools/exchange/verify_c.h"

namespace crema {

struct VerifiedTraining {
  std::string problem;  // why the files could not be run; "": they were
  bool passes = true;
  // Of the parameter that differs most, as shares of the largest change of its values: the difference, and
  // that between Crema with and without noise, 0 if it was not needed.
  double difference = 0, noise = 0;
};

// `solver`: with `training`, a net with Input layers, as its net. Error if the files cannot be compiled or
// run. Each iteration begins with the weights that Crema has, so differences do not grow. Where a value is
// zero up to rounding in front of a ReLU or a maximum, its gradient may go another way in one of the two.
// Differences above the tolerance are therefore compared with what Crema itself computes from weights with
// noise of the size of rounding; if they are larger, other inputs are tried, since an error shows with
// any.
VerifiedTraining verify_c_training(const Net& training, const SolverFile& solver,
                                   const CheckedC& checked, int iterations, double tolerance);

}  // namespace crema

// What a solver's file says of the weights' updates, for training that is written as C.
#pragma once

#include <string>

#include "proto/solver.pb.h"

namespace crema {

struct CUpdate {
  bool adam = false;  // or else gradient descent with momentum
  float momentum = 0, momentum2 = 0, delta = 0;
  float decay = 0;   // weight decay
  bool l1 = false;   // it draws weights to zero by their sign
  std::string rate;  // a C expression of `iteration`: the learning rate
  uint64_t seed = 0;
};

// Error for a rule, a policy or a field that C functions do not have.
CUpdate read_c_update(const SolverParameter& solver);

}  // namespace crema

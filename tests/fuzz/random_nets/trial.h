// A trial: a net trained for a few iterations in one way, and what came out.
#pragma once

#include <string>
#include <vector>

#include "fuzz/random_nets/random_net.h"
#include "solver/solver.h"

namespace crema::tests {

struct Way {
  Device device = Device::cpu;
  DType dtype = DType::f32;
  Precision precision = Precision::fp32;
  std::string implementation;
  bool fuse = true, format = true, reuse_memory = true, overlap = true, capture = true,
       shard = false;
  Recompute recompute = Recompute::cheap;
  bool repeatable = false;  // as in programs without -deterministic
  int threads = 1, iterations = 3;
  Communicator* world = nullptr;
  // What is compared in addition to the weights at the end.
  enum class Look { nothing, losses, blobs } look = Look::blobs;  // each includes those before it
  // The factor of gradients while they are computed (fp16). The solver skips an update whose
  // gradients have overflowed; from then on nothing is compared.
  double loss_scale = 1;
  // Random data and first weights are multiplied by 1 + noise * N(0, 1).
  double noise = 0;
  uint64_t noise_seed = 0;
  std::string more;               // fields of the solver
  std::string snapshot;           // to resume from
  bool test = false;              // the net in phase TEST, with the weights at the end, is run too
  TypeCounts* planned = nullptr;  // gets the layers of the plan
};

struct Values {
  std::string name;
  std::vector<double> values;
};

// Losses, outputs, gradients of the first iteration, weights of the last: in the same order for each
// way to run a net.
using Outcome = std::vector<Values>;

Outcome run_trial(const RandomNet& net, const Way& way);

// Way of the reference: every layer for itself, by the plain kernels.
Way plain_way(DType dtype);

}  // namespace crema::tests

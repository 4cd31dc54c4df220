// Optimizer: the update rule of a solver with its state, laid out as the parameters of one net are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/update.h"
#include "net/net.h"
#include "proto/solver.pb.h"

namespace crema {

class Optimizer {
 public:
  // Error when the solver asks for something its rule cannot do. `net` must outlive this.
  Optimizer(const SolverParameter& solver, Net& net);

  struct Clipped {
    double norm = 0, limit = 0, scale = 0;
  };
  // One update from the net's gradients, which are the sum over iter_size batches. Says when they
  // were clipped.
  std::optional<Clipped> update(double rate, int64_t iteration);

  // On a GPU: queues an update with the rates and factors of `live`, and moves those on.
  void queue_update(const LiveUpdate& live);
  // What clip_gradients asks for.
  UpdateLimits limits() const;
  // What Adam multiplies the rate of an iteration with; 1 for other rules.
  double rate_factor(int64_t iteration) const;

  // The state as Caffe stores it: a blob for each parameter, and for rules with two histories all
  // of them once more.
  void store(SolverState* state) const;
  // Error when number or shapes do not agree with the net; then nothing has changed.
  void restore(const SolverState& state, const std::string& path);

 private:
  UpdateStep step_at(int64_t iteration) const;
  std::optional<Clipped> clip(float* scale);
  Tensor history_of(size_t arena, size_t parameter) const;

  const SolverParameter& solver_;
  Net& net_;
  UpdateRule rule_;
  std::optional<Update> update_;
  std::vector<Tensor> history_;
};

// Names and shapes of a net's learned blobs in short.
std::string fingerprint_of(const Graph& graph);
// A hash of their values.
uint64_t weights_checksum(Net& net);

}  // namespace crema

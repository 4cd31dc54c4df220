// CpuIteration: an iteration on the host, step by step.
#pragma once

#include "solver/iteration/iteration.h"

namespace crema {

class CpuIteration : public Iteration {
 public:
  using Iteration::Iteration;

  void begin(const Request& request) override;
  std::optional<Optimizer::Clipped> end(int64_t iteration, double rate,
                                        bool wants_clipping) override;
  bool knows_losses() const override { return true; }
  std::vector<double> losses(int64_t first, int64_t last) override;

 private:
  void forward(int number) override;

  Request request_;
  double loss_ = 0;
};

}  // namespace crema

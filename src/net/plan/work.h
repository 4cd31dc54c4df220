// The minimum work of a step of a plan: its operations, and each tensor that it reads or writes
// moved once. Tensors that it is given but does not touch do not count: a batch normalization that
// gets sums and passes on scale and shift reads no blob.
#pragma once

#include "layers/layer.h"

namespace crema {

struct PlanNode;  // net/plan/plan.h

struct Work {
  double operations = 0;  // two for a multiply-add; 0: memory-bound
  double bytes = 0;
  // Operations as the chosen kernel counts: Winograd's has fewer, and of bytes several count as one.
  double executed = 0;
};

// For a layer whose arguments are bound to memory.
Work forward_work(const Layer& layer, const Preparation& preparation, const Forward& forward);
Work backward_work(const Layer& layer, const Preparation& preparation, const Backward& backward);

// The same for a step, including what the plan adds to it: recomputed values, summed gradients.
Work forward_work(const PlanNode& node);
Work backward_work(const PlanNode& node);

}  // namespace crema

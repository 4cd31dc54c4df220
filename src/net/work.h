// What a step of a plan has to do at least: its operations, and its tensors moved once each.
#pragma once

namespace crema {

struct PlanNode;  // net/plan.h

struct Work {
  double operations = 0;  // two for a multiply-add; 0: memory decides
  double bytes = 0;
};

// The plan must be bound to memory.
Work forward_work(const PlanNode& node);
Work backward_work(const PlanNode& node);

}  // namespace crema

// Pass "sums": batch normalization first reads all that a convolution wrote, only to add it up.
// Where the convolution's kernel can do that as it writes, it is asked to
// (Preparation::wants_sums), and the sums are handed on (Forward::bottom_sums). Kernels add them in
// any order, so this is left out where results must repeat.
#include "net/plan.h"

namespace crema {

void ask_for_sums(Context& context, Plan& plan) {
  if (context.repeatable) return;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    PlanNode& reader = plan.nodes[i];
    if (reader.bottoms.empty() || !reader.layer->takes_sums() || reader.follows) continue;
    const PlanValue& value = plan.values[reader.bottoms[0]];
    if (value.producer < 0 || value.top != 0) continue;
    PlanNode& maker = plan.nodes[value.producer];
    if (maker.sums_reader >= 0) continue;
    maker.sums_reader = static_cast<int>(i);
    reader.sums_maker = value.producer;
  }
}

}  // namespace crema

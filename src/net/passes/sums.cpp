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
    reader.sums_makers.assign(reader.bottoms.size(), -1);
    for (size_t j = 0; j < reader.bottoms.size() && !reader.follows; ++j) {
      const PlanValue& value = plan.values[reader.bottoms[j]];
      if (!reader.layer->takes_sums(static_cast<int>(j)) || value.producer < 0 || value.top != 0)
        continue;
      PlanNode& maker = plan.nodes[value.producer];
      if (maker.sums_reader >= 0) continue;
      maker.sums_reader = static_cast<int>(i);
      reader.sums_makers[j] = value.producer;
    }
  }
}

}  // namespace crema

// Pass "relu": a maximum over values that a ReLU has left is positive exactly where the chosen
// value is. So a max pooling can take its gradient through that ReLU without reading what it
// pooled, and where all readers do, also behind a Concat, nobody's backward reads the ReLU's output
// any more: its memory is free after the forward pass, and its maker has one pass less to make.
#include <algorithm>

#include "net/plan.h"

namespace crema {

void hand_relus_on(Plan& plan) {
  // Values whose elements all come out of a ReLU.
  std::vector<bool> from_relu(plan.values.size(), false);
  for (PlanNode& node : plan.nodes) {
    const auto comes = [&](int value) { return bool(from_relu[value]); };
    const bool joined = !node.bottoms.empty() && node.tops.size() == 1 &&
                        node.layer->joins_bottoms() &&
                        std::all_of(node.bottoms.begin(), node.bottoms.end(), comes);
    if (!node.tops.empty()) from_relu[node.tops[0]] = node.layer->ends_in_relu() || joined;
    node.takes_relu =
        !node.bottoms.empty() && node.layer->can_take_relu() && comes(node.bottoms[0]);
  }
  // Values all parts of whose gradient are taken through that ReLU.
  std::vector<bool> taken(plan.values.size());
  for (size_t id = 0; id < taken.size(); ++id)
    taken[id] = from_relu[id] && !plan.values[id].output && plan.values[id].loss_weight == 0;
  for (auto node = plan.nodes.rbegin(); node != plan.nodes.rend(); ++node) {
    for (size_t j = 0; j < node->bottoms.size(); ++j) {
      if (!node->backward || !node->propagate[j]) continue;
      const bool through =
          node->takes_relu ? j == 0 : node->layer->joins_bottoms() && taken[node->tops[0]];
      if (!through) taken[node->bottoms[j]] = false;
    }
    node->relu_taken = node->backward && node->layer->ends_in_relu() && taken[node->tops[0]];
  }
}

}  // namespace crema

// Pass "relu": a maximum over values that a ReLU has left is positive exactly where the chosen
// value is. So a max pooling can take its gradient through that ReLU without reading what it
// pooled, and where all readers do, also behind a Concat, nobody's backward reads the ReLU's output
// any more: its memory is free after the forward pass, and its maker has one pass less to make. A
// layer that reads its bottom in backward anyway, as the end of a classifier does, can do so too.
#include <algorithm>

#include "net/plan.h"

namespace crema {

void hand_relus_on(Plan& plan) {
  // Values whose elements all come out of a ReLU: what their gradient is multiplied by besides; 0
  // for others.
  std::vector<float> from_relu(plan.values.size(), 0.f);
  for (PlanNode& node : plan.nodes) {
    const float first = node.bottoms.empty() ? 0.f : from_relu[node.bottoms[0]];
    const auto like_first = [&](int value) { return from_relu[value] == first; };
    const bool joined = node.tops.size() == 1 && node.layer->joins_bottoms() &&
                        std::all_of(node.bottoms.begin(), node.bottoms.end(), like_first);
    if (!node.tops.empty()) {
      from_relu[node.tops[0]] = node.layer->ends_in_relu() ? node.layer->relu_factor()
                                : joined                   ? first
                                                           : 0.f;
    }
    // To go through a ReLU twice changes nothing, a factor does: see below.
    const bool factor = node.layer->can_take_relu_factor() && first != 0 &&
                        plan.nodes[plan.values[node.bottoms[0]].producer].layer->ends_in_relu();
    node.takes_relu = first != 0 && node.layer->can_take_relu() && (first == 1 || factor);
    node.relu_factor = node.takes_relu ? first : 1.f;
  }
  // Values all parts of whose gradient are taken through that ReLU.
  std::vector<bool> taken(plan.values.size());
  for (size_t id = 0; id < taken.size(); ++id)
    taken[id] = from_relu[id] != 0 && !plan.values[id].output && plan.values[id].loss_weight == 0;
  for (auto node = plan.nodes.rbegin(); node != plan.nodes.rend(); ++node) {
    for (size_t j = 0; j < node->bottoms.size(); ++j) {
      if (!node->backward || !node->propagate[j]) continue;
      const bool through =
          node->takes_relu ? j == 0 : node->layer->joins_bottoms() && taken[node->tops[0]];
      if (!through) taken[node->bottoms[j]] = false;
    }
    node->relu_taken = node->backward && node->layer->ends_in_relu() && taken[node->tops[0]];
  }
  for (PlanNode& node : plan.nodes) {
    if (node.relu_factor == 1 || plan.nodes[plan.values[node.bottoms[0]].producer].relu_taken)
      continue;
    node.takes_relu = false;
    node.relu_factor = 1;
  }
}

}  // namespace crema

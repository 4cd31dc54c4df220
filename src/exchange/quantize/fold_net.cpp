#include "exchange/quantize/fold_net.h"

#include <set>

#include "net/plan/plan.h"
#include "proto/layer.pb.h"

namespace crema {
FoldedNet fold_net(const NetParameter& text, Net& net) {
  FoldedNet result;
  result.net = text;
  result.weights = weights_of(net);
  const Plan& plan = net.plan();
  const NetParameter& filtered = net.graph().net;
  std::map<std::string, std::string> tops;  // new ones, by the layer that takes over others
  std::set<std::string> gone;
  for (const PlanNode& node : plan.nodes) {
    if (node.folding < 0) continue;
    const Folding& folding = plan.foldings[node.folding];
    if (folding.maps.empty()) continue;  // only packed
    const LayerParameter& first = filtered.layer(node.members[0]);
    std::string top = first.top(0);
    for (size_t i = 1; i <= folding.maps.size(); ++i) {
      const LayerParameter& map = filtered.layer(node.members[i]);
      top = map.top(0);
      gone.insert(map.name());
      result.folded.push_back(map.name());
      result.weights.erase(map.name());
    }
    tops[first.name()] = top;
    const FoldedWeights& folded = *plan.folded[node.folding];
    result.weights[first.name()] = {
        {folding.weights.shape, to_floats(net.context(), folded.weights)},
        {folding.bias.shape, to_floats(net.context(), folded.bias)}};
  }
  result.net.clear_layer();
  for (const LayerParameter& layer : text.layer()) {
    if (gone.count(layer.name()) > 0) continue;
    LayerParameter& left = *result.net.add_layer();
    left = layer;
    const auto top = tops.find(layer.name());
    if (top == tops.end()) continue;
    left.set_top(0, top->second);
    for (const Node& node : net.graph().nodes)
      if (node.message.name() == layer.name()) node.layer->give_bias(&left);
  }
  return result;
}

}  // namespace crema

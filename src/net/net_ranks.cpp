// A net's functions for training with several ranks.
#include "device/communicator.h"
#include "net/net.h"
#include "net/plan/plan.h"

namespace crema {

BatchShare Net::share() const {
  for (const auto& [node, source] : sources_of(graph_)) {
    const BatchShare share = source.share();
    if (share.all > 0) return share;
  }
  return {};
}

double Net::loss_share() const {
  if (!training() || !context_.world()) return 1;
  const BatchShare samples = share();
  return samples.all > 0 ? static_cast<double>(samples.count) / static_cast<double>(samples.all)
                         : 1.0 / context_.ranks();
}

std::vector<int> Net::final_nodes() {
  const Plan& plan = ready();
  std::vector<int> nodes(graph_.parameters.size(), -1);
  for (int i = static_cast<int>(plan.nodes.size()) - 1; i >= 0; --i) {
    const PlanNode& node = plan.nodes[i];
    for (size_t k = 0; k < node.parameters.size(); ++k) {
      if (node.backward && node.arguments.backward.parameter_diff[k]) nodes[node.parameters[k]] = i;
    }
  }
  return nodes;
}

}  // namespace crema

#include "net/graph/needs_backward.h"

#include <map>
#include <set>
#include <string>

namespace crema {
namespace {

// In file order: where gradients are wanted, because of learning parameters upstream or on the
// user's request.
void find_wanted(const Graph& graph, const std::vector<const Layer*>& layers,
                 BackwardNeeds* needs) {
  std::map<std::string, bool> blob_needs;
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    const LayerParameter& message = graph.net.layer(i);
    bool layer_needs = false;
    std::vector<bool> bottom_needs;
    for (int j = 0; j < message.bottom_size(); ++j) {
      bool wanted = blob_needs[message.bottom(j)];
      if (j < message.propagate_down_size()) wanted = message.propagate_down(j);
      bottom_needs.push_back(wanted);
      layer_needs = layer_needs || wanted;
    }
    for (size_t k = 0; k < graph.views[i].parameters.size(); ++k) {
      const Parameter& parameter = graph.parameters[graph.views[i].parameters[k]];
      const bool stated =
          static_cast<int>(k) < message.param_size() && message.param(k).has_lr_mult();
      const float lr_mult = stated ? message.param(k).lr_mult() : parameter.lr_mult;
      layer_needs = layer_needs || (parameter.learned && lr_mult != 0);
    }
    if (graph.net.force_backward()) {
      layer_needs = true;
      for (int j = 0; j < message.bottom_size(); ++j) {
        bottom_needs[j] = bottom_needs[j] || !layers[i] || layers[i]->differentiable(j);
      }
    }
    for (const std::string& top : message.top()) blob_needs[top] = layer_needs;
    needs->layer.push_back(layer_needs);
    needs->bottom.push_back(std::move(bottom_needs));
  }
}

}  // namespace

BackwardNeeds find_backward_needs(const Graph& graph, const std::vector<const Layer*>& layers,
                                  const std::vector<std::vector<float>>& loss_weights,
                                  bool seed_outputs) {
  BackwardNeeds needs;
  find_wanted(graph, layers, &needs);
  needs.wanted = needs.bottom;
  // In reverse order: only what reaches a loss, and not through a bottom that takes no gradient.
  std::set<std::string> under_loss, skipped;
  for (int i = graph.net.layer_size() - 1; i >= 0; --i) {
    const LayerParameter& message = graph.net.layer(i);
    bool contributes = false, all_skipped = true;
    // A loss may have a top that the file does not name.
    for (const float weight : loss_weights[i]) contributes |= weight != 0;
    for (const int top : graph.views[i].tops)
      contributes |= seed_outputs && graph.values[top].output;
    for (const std::string& top : message.top()) {
      contributes |= under_loss.count(top) > 0;
      all_skipped &= skipped.count(top) > 0;
    }
    if (needs.layer[i] && message.top_size() > 0 && all_skipped && !graph.net.force_backward()) {
      needs.layer[i] = false;
      needs.bottom[i].assign(needs.bottom[i].size(), false);
    }
    if (!contributes) needs.layer[i] = false;
    for (int j = 0; j < message.bottom_size(); ++j) {
      if (contributes) {
        under_loss.insert(message.bottom(j));
      } else {
        needs.bottom[i][j] = false;
      }
      if (layers[i] && !layers[i]->differentiable(j)) needs.bottom[i][j] = false;
      if (!needs.bottom[i][j]) skipped.insert(message.bottom(j));
    }
  }
  return needs;
}

}  // namespace crema

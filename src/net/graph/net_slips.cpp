#include "net/graph/net_slips.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "layers/layer.h"
#include "net/graph/graph_builder.h"
#include "net/graph/silent_during.h"

namespace crema {
namespace {

bool fits(Context& context, const GivenBottoms& bottoms, const std::vector<Shape>& shapes) {
  const SilentDuring silent(context);
  try {
    const std::shared_ptr<Layer> layer =
        make_layer(bottoms.layer, bottoms.training, bottoms.folder);
    layer->setup(context, shapes);
    const Inference inference = layer->infer(shapes);
    return std::all_of(inference.tops.begin(), inference.tops.end(), [](const Shape& top) {
      return std::all_of(top.dims().begin(), top.dims().end(),
                         [](int64_t extent) { return extent > 0; });
    });
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error&) {
    return false;
  }
}

std::string order_hint(Context& context, const GivenBottoms& bottoms) {
  constexpr size_t kMost = 4;
  const size_t count = bottoms.shapes.size();
  if (count < 2 || count > kMost || bottoms.layer.type() == "Python") return "";
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  while (std::next_permutation(order.begin(), order.end())) {
    std::vector<Shape> shapes;
    std::vector<std::string> given, fitting;
    for (size_t j = 0; j < count; ++j) {
      shapes.push_back(bottoms.shapes[order[j]]);
      given.push_back(cat('"', bottoms.blobs[j], "\" ", bottoms.shapes[j].brief()));
      fitting.push_back(cat("bottom: \"", bottoms.blobs[order[j]], '"'));
    }
    if (fits(context, bottoms, shapes))
      return cat("; its bottoms are ", join(given, ", "),
                 ", and would fit in another order: ", join(fitting, " "));
  }
  return "";
}

}  // namespace

void with_order_hint(Context& context, const GivenBottoms& bottoms,
                     const std::function<void()>& work) {
  try {
    work();
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    const std::string hint = order_hint(context, bottoms);
    if (hint.empty()) throw;
    fail(error.what(), hint);
  }
}

void refuse_swapped_losses(const Graph& graph, const std::vector<const Layer*>& layers,
                           const std::vector<std::vector<bool>>& wanted) {
  for (const Node& node : graph.nodes) {
    const int i = node.members[0];
    // A loss with parameters, such as RBM, trains those, whatever is behind its bottoms.
    if (!layers[i] || !layers[i]->is_loss() || !layers[i]->parameters().empty() ||
        graph.values[node.tops[0]].loss_weight == 0)
      continue;
    int labels = -1;
    bool learns = false;
    for (int j = 0; j < static_cast<int>(wanted[i].size()); ++j) {
      if (!wanted[i][j]) continue;
      layers[i]->differentiable(j) ? void(learns = true) : void(labels = j);
    }
    if (learns || labels < 0) continue;
    const auto name = [&](int j) { return graph.values[node.bottoms[j]].blob; };
    at_layer(node.place, [&] {
      fail("bottom ", labels, " is \"", name(labels),
           "\", where this loss takes labels and sends no gradient, but the layers that learn are "
           "behind it, and none behind \"",
           name(labels == 0 ? 1 : 0), "\": are the bottoms in the wrong order? Scores come first");
    });
  }
}

void warn_of_namesake(Context& context, const Graph& graph, const Node& node) {
  const std::string& name = node.message.name();
  for (const Node& other : graph.nodes) {
    if (&other == &node || other.message.name() != name || other.parameters.empty()) continue;
    const bool known = !node.place.where.empty();
    context.log().warning(
        cat(node.place.where, known ? ": " : "", "layer \"", name,
            "\": a layer above has this name and weights, too",
            known ? cat(" (", other.place.where, ")") : "",
            ". Weights are loaded by the names of layers, so a snapshot could not give each its "
            "own: rename one"));
    return;
  }
}

}  // namespace crema

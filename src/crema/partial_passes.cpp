#include "crema/partial_passes.h"

#include <vector>

#include "base/error.h"
#include "net/plan/plan.h"

namespace crema {

int PartialPasses::last_layer(const std::string& name) const {
  const NetParameter& net = net_.graph().net;
  std::vector<std::string> names;
  for (int i = net.layer_size() - 1; i >= 0; --i) {
    if (net.layer(i).name() == name) return i;
    names.push_back(net.layer(i).name());
  }
  for (int i = net.layer_size() - 1; i >= 0; --i) {
    for (const std::string& top : net.layer(i).top()) {
      if (top == name) return i;
      names.push_back(top);
    }
  }
  fail("net \"", net_.name(), "\" has no layer and no blob \"", name, "\"",
       did_you_mean(name, names));
}

int PartialPasses::version(const std::string& blob) const {
  const Graph& graph = net_.graph();
  for (int i = last_; i >= 0; --i) {
    const LayerParameter& layer = graph.net.layer(i);
    for (int j = 0; j < layer.top_size(); ++j) {
      if (layer.top(j) == blob) return graph.views[i].tops[j];
    }
  }
  return -1;
}

int PartialPasses::require_version(const std::string& blob) const {
  const int id = version(blob);
  if (id >= 0) return id;
  net_.blob(blob);  // the Error for a name that is not there
  require(last_ >= 0, "blob \"", blob, "\" has no content yet: call forward() first");
  fail("blob \"", blob, "\" has no content: the last pass ended at layer \"",
       net_.graph().net.layer(last_).name(), "\", before it");
}

Tensor PartialPasses::blob(const std::string& name) const {
  return ends_early() ? net_.plan().value(require_version(name)) : net_.blob(name);
}

void PartialPasses::require_whole() const {
  require(!ends_early(), "the last pass ended at layer \"",
          ends_early() ? net_.graph().net.layer(last_).name() : "",
          "\": the net's results need a whole one, forward()");
}

void PartialPasses::backward(const std::string& blob, std::span<const float> gradient) {
  const int id = require_version(blob);
  Plan& plan = net_.plan();
  const PlanValue& value = plan.values[id];
  const auto count = static_cast<int64_t>(gradient.size());
  require(count == value.shape.count(), "the gradient of blob \"", blob, "\" has ", count,
          " values, but its shape ", value.shape.brief(), " has ", value.shape.count());
  const Tensor diff = plan.diff(id);
  require(static_cast<bool>(diff), "no gradient flows from blob \"", blob,
          "\" to an input: no differentiable layer makes it");
  Context& context = net_.context();
  for (const Tensor& output : net_.output_diffs()) {
    if (output) zero(context, output);
  }
  // Layers behind the blob give no gradient to the blobs that they read.
  const auto begin = [&](const PlanNode& node) {
    const auto index = static_cast<int>(&node - plan.nodes.data());
    if (index == value.producer) from_floats(context, gradient.data(), diff);
    if (index <= value.producer) return false;
    for (const Tensor& bottom : node.arguments.backward.bottom_diff) {
      if (bottom) zero(context, bottom);
    }
    return true;
  };
  const SharedWeights::Reading reading = net_.read_parameters();
  net_.backward_layers(net_.graph().net.layer_size() - 1, 0, begin);
  context.synchronize();
}

Tensor PartialPasses::gradient(const std::string& blob) const {
  const int id = require_version(blob);
  const PlanNode& producer = net_.plan().nodes[net_.plan().values[id].producer];
  // Layers may have overwritten an input in place.
  const Tensor diff = producer.bottoms.empty() ? net_.input_diff(blob) : net_.plan().diff(id);
  require(static_cast<bool>(diff), "blob \"", blob,
          "\" has no gradient: no layer between it and an output is differentiable");
  return diff;
}

}  // namespace crema

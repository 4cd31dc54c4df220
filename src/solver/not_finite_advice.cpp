#include "solver/not_finite_advice.h"

#include <algorithm>

#include "base/error.h"
#include "proto/params/normalization.pb.h"

namespace crema {
namespace {

// Layers that divide by the root of stored variances.
bool reads_statistics(const Net& net, const LayerParameter& layer) {
  const bool training = layer.has_phase() ? layer.phase() == TRAIN : net.training();
  if (layer.type() == "BN") return layer.bn_param().frozen() || !training;
  const BatchNormParameter& p = layer.batch_norm_param();
  return layer.type() == "BatchNorm" &&
         (p.has_use_global_stats() ? p.use_global_stats() : !training);
}

// Their names, of those whose variances are all 0: no training has measured them.
std::vector<std::string> without_statistics(Net& net) {
  std::vector<std::string> names;
  const Graph& graph = net.graph();
  for (const Node& node : graph.nodes) {
    if (!reads_statistics(net, node.message)) continue;
    const size_t variance = node.message.type() == "BN" ? 3 : 1;
    if (node.parameters.size() <= variance) continue;
    const std::vector<float> values =
        to_floats(net.context(), graph.parameters[node.parameters[variance]].data);
    if (std::all_of(values.begin(), values.end(), [](float value) { return value == 0; }))
      names.push_back(node.message.name());
  }
  return names;
}

}  // namespace

std::string advice_on(Net& net, const std::optional<NotFinite>& where,
                      const BeforeNotFinite& before) {
  if (where && where->in_source)
    return "Look at the records and at transform_param (scale, mean_value, mean_file)";
  if (before.updated)
    return cat(
        "A smaller base_lr (it is ", before.base_lr,
        "), clip_gradients or a look at the data (scale, mean_value, labels) is what usually "
        "helps");
  const std::string yet = before.trains ? "No update has been made yet: " : "";
  if (where && where->in_parameter && starts_with(where->position, "parameter"))
    return before.weights.empty() ? yet + "the layer's filler gives these values"
                                  : cat(yet, "the weights that it started from, ", before.weights,
                                        ", hold these values");
  const std::vector<std::string> names = without_statistics(net);
  if (!names.empty()) {
    const size_t more = names.size() - 1;
    return cat(
        yet, "layer \"", names[0], "\"",
        more > 0 ? cat(" and ", more, " more like it divide") : " divides",
        " by the root of stored variances that are 0, because no training has measured them: "
        "start from weights that hold these statistics (-weights)",
        before.trains ? ", or leave out use_global_stats and frozen" : "");
  }
  return cat(
      yet,
      before.weights.empty()
          ? ""
          : cat("see whether the weights, ", before.weights, ", are for these data; "),
      "smaller data (transform_param: scale, mean_value) or smaller first weights (the std of "
      "a weight_filler, or type \"xavier\" or \"msra\") help where values grow from layer to "
      "layer, and no learning rate does");
}

}  // namespace crema

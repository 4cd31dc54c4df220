#include "solver/divergence/not_finite.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "base/error.h"
#include "net/plan/plan.h"
#include "proto/params/normalization.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

constexpr size_t kBlobsBefore = 8;  // whose statistics are shown
constexpr float kLargest = std::numeric_limits<float>::max();

// Counts NaN and infinite values into `found`; true when there are any.
template <typename T>
bool look_at(const std::vector<T>& values, NotFinite* found) {
  const auto number_of = [&](const auto& is) {
    return std::count_if(values.begin(), values.end(), is);
  };
  found->count = static_cast<int64_t>(values.size());
  found->nan = number_of([](T value) { return std::isnan(value); });
  found->infinite = number_of([](T value) { return std::isinf(value); });
  return found->nan + found->infinite > 0;
}

bool look_at(Context& context, const Tensor& tensor, NotFinite* found) {
  if (!tensor || tensor.count() == 0) return false;
  if (context.device() == Device::cpu && tensor.dtype() == DType::f32) {
    const float* const values = tensor.data<float>();
    const int64_t count = tensor.elements();
    bool finite = true;
#pragma omp parallel for simd reduction(&& : finite) if (count > 65536)
    for (int64_t i = 0; i < count; ++i) finite = finite && std::abs(values[i]) <= kLargest;
    if (finite) return false;
  }
  return tensor.dtype() == DType::f64 ? look_at(to_doubles(context, tensor), found)
                                      : look_at(to_floats(context, tensor), found);
}

// The names of the layers that a step of the plan runs.
std::string name_of(const Graph& graph, const PlanNode& node) {
  std::vector<std::string> names;
  for (const int member : node.members) names.push_back(graph.net.layer(member).name());
  std::string name = cat("layer \"", names[0], "\"");
  if (names.size() == 1) return name;
  names.erase(names.begin());
  return cat(name, " (run as one with ", join(names, ", "), ")");
}

// `layer "ip1", top "h" 6x7: min -1.2, max 2.3, mean 0.01, norm 4.5`
std::string statistics_of(Context& context, const std::string& name, const Tensor& tensor) {
  const std::vector<double> values = to_doubles(context, tensor);
  double least = values[0], most = values[0], sum = 0, squares = 0;
  for (const double value : values) {
    // A nan stays, and shows.
    if (!(value >= least) && !std::isnan(least)) least = value;
    if (!(value <= most) && !std::isnan(most)) most = value;
    sum += value;
    squares += value * value;
  }
  return cat(name, " ", tensor.shape().brief(), ": min ", least, ", max ", most, ", mean ",
             sum / static_cast<double>(values.size()), ", norm ", std::sqrt(squares));
}

// What the last pass wrote of a step's tops: where shapes depend on data, the rest of the memory holds
// anything.
std::vector<Tensor> tops_of(const PlanNode& node) {
  std::vector<Tensor> tops = node.arguments.forward.top;
  if (!node.shapes.dynamic) return tops;
  const std::vector<Shape>& written = state_of<DynamicTops>(node.arguments.forward).tops;
  for (size_t j = 0; j < tops.size() && j < written.size(); ++j)
    tops[j] = written[j].count() <= tops[j].count() ? part(tops[j], written[j]) : Tensor();
  return tops;
}

// The blobs that a step has read and written, and the parameters of the step with the fault.
void describe_step(Net& net, const PlanNode& node, bool faulty, std::deque<std::string>* lines) {
  const Graph& graph = net.graph();
  if (node.members.empty()) return;
  const auto add = [&](const std::string& name, const Tensor& tensor) {
    if (!tensor || tensor.count() == 0) return;
    lines->push_back(statistics_of(net.context(), cat(name_of(graph, node), ", ", name), tensor));
  };
  if (faulty) {
    for (size_t k = 0; k < node.arguments.forward.parameters.size(); ++k)
      add(cat("parameter ", k), node.arguments.forward.parameters[k]);
  }
  const Graph::View& view = graph.views[node.members.back()];
  const std::vector<Tensor> tops = tops_of(node);
  for (size_t j = 0; j < tops.size() && j < view.tops.size(); ++j) {
    add(cat("top \"", graph.values[view.tops[j]].blob, "\""), tops[j]);
    while (!faulty && lines->size() > kBlobsBefore) lines->pop_front();
  }
}

std::optional<NotFinite> look_at_step(Net& net, const PlanNode& node) {
  const Graph& graph = net.graph();
  NotFinite found;
  if (node.members.empty()) return std::nullopt;  // inserted by the planner
  found.layer = name_of(graph, node);
  for (size_t k = 0; k < node.arguments.forward.parameters.size(); ++k) {
    if (!look_at(net.context(), node.arguments.forward.parameters[k], &found)) continue;
    found.position = cat("parameter ", k);
    found.in_parameter = true;
    return found;
  }
  const Graph::View& view = graph.views[node.members.back()];
  const std::vector<Tensor> tops = tops_of(node);
  for (size_t j = 0; j < tops.size() && j < view.tops.size(); ++j) {
    if (!look_at(net.context(), tops[j], &found)) continue;
    found.position = cat("top \"", graph.values[view.tops[j]].blob, "\"");
    found.in_source = node.bottoms.empty();
    return found;
  }
  return std::nullopt;
}

std::optional<NotFinite> look_at_parameter(Net& net, const Parameter& parameter, bool gradient) {
  NotFinite found;
  if (!look_at(net.context(), gradient ? parameter.diff : parameter.data, &found))
    return std::nullopt;
  found.layer = cat("layer \"", parameter.layer, "\"");
  found.position = cat(gradient ? "gradient of " : "", "parameter ", parameter.index);
  found.in_parameter = true;
  found.statistics = {cat("The parameters of ", found.layer, ":")};
  for (const Parameter& other : net.parameters()) {
    if (other.layer != parameter.layer) continue;
    const std::string name = cat("parameter ", other.index);
    found.statistics.push_back("    " + statistics_of(net.context(), name, other.data));
    if (other.diff)
      found.statistics.push_back("    " +
                                 statistics_of(net.context(), "gradient of " + name, other.diff));
  }
  return found;
}

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

std::string NotFinite::text() const {
  std::vector<std::string> kinds;
  if (nan > 0) kinds.push_back(cat(nan, " nan"));
  if (infinite > 0) kinds.push_back(cat(infinite, " infinite"));
  return cat(layer, ": its ", position, " holds ", join(kinds, " and "), " of ", count, " numbers");
}

std::optional<NotFinite> first_not_finite(Net& net, uint64_t pass, bool with_statistics) {
  std::optional<NotFinite> found;
  std::deque<std::string> lines;
  net.set_live_pass(nullptr);  // the given pass, not the one that a GPU has reached
  // Blobs share memory, so each is checked right after it was written.
  net.set_observer([&](const Net::StepInfo& step, bool begin) {
    if (begin || step.backward || found) return;
    found = look_at_step(net, *step.node);
    if (with_statistics) describe_step(net, *step.node, found.has_value(), &lines);
  });
  const auto stop = [&] { net.set_observer(nullptr); };
  try {
    net.forward(pass);
  } catch (...) {
    stop();
    throw;
  }
  stop();
  if (!found || !with_statistics) return found;
  found->statistics = {"The blobs before it, in the order of the forward pass:"};
  for (const std::string& line : lines) found->statistics.push_back("    " + line);
  return found;
}

std::optional<NotFinite> parameter_not_finite(Net& net) {
  for (const Parameter& parameter : net.parameters()) {
    if (auto found = look_at_parameter(net, parameter, false)) return found;
  }
  return std::nullopt;
}

std::optional<NotFinite> gradient_not_finite(Net& net) {
  const std::vector<Parameter>& all = net.parameters();
  for (auto parameter = all.rbegin(); parameter != all.rend(); ++parameter) {
    if (auto found = look_at_parameter(net, *parameter, true)) return found;
  }
  return std::nullopt;
}

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

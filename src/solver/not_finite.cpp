#include "solver/not_finite.h"

#include <algorithm>
#include <cmath>

#include "net/plan.h"

namespace crema {
namespace {

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
  for (size_t j = 0; j < node.arguments.forward.top.size() && j < view.tops.size(); ++j) {
    if (!look_at(net.context(), node.arguments.forward.top[j], &found)) continue;
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
  return found;
}

}  // namespace

std::string NotFinite::text() const {
  std::vector<std::string> kinds;
  if (nan > 0) kinds.push_back(cat(nan, " nan"));
  if (infinite > 0) kinds.push_back(cat(infinite, " infinite"));
  return cat(layer, ": its ", position, " holds ", join(kinds, " and "), " of ", count, " numbers");
}

std::optional<NotFinite> first_not_finite(Net& net, uint64_t pass) {
  std::optional<NotFinite> found;
  net.set_live_pass(nullptr);  // the given pass, not the one that a GPU has reached
  // Blobs share memory, so each is checked right after it was written.
  net.set_observer([&](const Net::StepInfo& step, bool begin) {
    if (!begin && !step.backward && !found) found = look_at_step(net, *step.node);
  });
  const auto stop = [&] { net.set_observer(nullptr); };
  try {
    net.forward(pass);
  } catch (...) {
    stop();
    throw;
  }
  stop();
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

}  // namespace crema

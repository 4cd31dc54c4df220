#include "solver/iteration/debug_info.h"

#include <cmath>

#include "base/strings.h"
#include "net/plan/plan.h"

namespace crema {

DebugInfo::DebugInfo(Net& net, std::function<void(const std::string& line)> write)
    : net_(net), write_(std::move(write)) {
  const Graph& graph = net.graph();
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    if (graph.net.layer(i).type() == "Split") splits_[graph.views[i].bottoms[0]].push_back(i);
  }
}

DebugInfo::~DebugInfo() { enable(false); }

void DebugInfo::enable(bool on) {
  if (on == enabled_) return;
  enabled_ = on;
  if (!on) return net_.set_observer(nullptr);
  net_.set_observer([this](const Net::StepInfo& step, bool begin) {
    const auto& node = static_cast<const PlanNode&>(*step.node);
    if (node.members.empty()) return;  // inserted by the planner
    if (step.backward) {
      begin ? before_backward(node) : after_backward(node);
    } else if (!begin) {
      after_forward(node);
    }
  });
}

double DebugInfo::mean(const Tensor& tensor) const {
  double sum = 0;
  for (double value : to_doubles(net_.context(), tensor)) sum += std::abs(value);
  return tensor.count() > 0 ? sum / static_cast<double>(tensor.count()) : 0;
}

std::string DebugInfo::shown(int parameter) const {
  const Parameter& p = net_.graph().parameters[parameter];
  return p.name.empty() ? cat(p.index) : p.name;
}

void DebugInfo::after_forward(const PlanNode& node) {
  const Graph& graph = net_.graph();
  const LayerParameter& layer = graph.net.layer(node.members.back());
  const Graph::View& view = graph.views[node.members.back()];
  for (size_t j = 0; j < node.arguments.forward.top.size() && j < view.tops.size(); ++j) {
    write_(cat("    [Forward] Layer ", layer.name(), ", top blob ", graph.values[view.tops[j]].blob,
               " data: ", mean(node.arguments.forward.top[j])));
  }
  for (size_t k = 0; k < node.parameters.size(); ++k) {
    write_(cat("    [Forward] Layer ", layer.name(), ", param blob ", shown(node.parameters[k]),
               " data: ", mean(node.arguments.forward.parameters[k])));
  }
  for (size_t j = 0; j < node.arguments.forward.top.size() && j < view.tops.size(); ++j) {
    for (int split : splits_[view.tops[j]]) {
      for (const std::string& top : graph.net.layer(split).top()) {
        write_(cat("    [Forward] Layer ", graph.net.layer(split).name(), ", top blob ", top,
                   " data: ", mean(node.arguments.forward.top[j])));
      }
    }
  }
}

void DebugInfo::before_backward(const PlanNode& node) {
  const Graph& graph = net_.graph();
  const Graph::View& view = graph.views[node.members.back()];
  for (size_t j = 0; j < node.arguments.backward.top_diff.size() && j < view.tops.size(); ++j) {
    if (!node.arguments.backward.top_diff[j]) continue;
    for (int split : splits_[view.tops[j]]) {
      write_(cat("    [Backward] Layer ", graph.net.layer(split).name(), ", bottom blob ",
                 graph.net.layer(split).bottom(0),
                 " diff: ", mean(node.arguments.backward.top_diff[j])));
    }
  }
}

void DebugInfo::after_backward(const PlanNode& node) {
  const LayerParameter& layer = net_.graph().net.layer(node.members.back());
  const Backward& arguments = node.arguments.backward;
  for (size_t j = 0; j < arguments.bottom_diff.size() && static_cast<int>(j) < layer.bottom_size();
       ++j) {
    if (!arguments.bottom_diff[j]) continue;
    write_(cat("    [Backward] Layer ", layer.name(), ", bottom blob ",
               layer.bottom(static_cast<int>(j)), " diff: ", mean(arguments.bottom_diff[j])));
  }
  for (size_t k = 0; k < arguments.parameter_diff.size(); ++k) {
    if (!arguments.parameter_diff[k]) continue;
    write_(cat("    [Backward] Layer ", layer.name(), ", param blob ", k,
               " diff: ", mean(arguments.parameter_diff[k])));
  }
}

void DebugInfo::norms() {
  double sums[2] = {}, squares[2] = {};
  for (const Parameter& parameter : net_.parameters()) {
    const Tensor tensors[2] = {parameter.data, parameter.diff};
    for (int i = 0; i < 2; ++i) {
      if (!tensors[i]) continue;
      for (double value : to_doubles(net_.context(), tensors[i])) {
        sums[i] += std::abs(value);
        squares[i] += value * value;
      }
    }
  }
  write_(cat("    [Backward] All net params (data, diff): L1 norm = (", sums[0], ", ", sums[1],
             "); L2 norm = (", std::sqrt(squares[0]), ", ", std::sqrt(squares[1]), ")"));
}

void DebugInfo::before_update() {
  before_.clear();
  for (const Parameter& parameter : net_.parameters())
    before_.push_back(to_doubles(net_.context(), parameter.data));
}

void DebugInfo::after_update() {
  for (size_t i = 0; i < before_.size(); ++i) {
    const Parameter& parameter = net_.parameters()[i];
    const std::vector<double> now = to_doubles(net_.context(), parameter.data);
    double data = 0, change = 0;
    for (size_t j = 0; j < now.size(); ++j) {
      data += std::abs(before_[i][j]);
      change += std::abs(now[j] - before_[i][j]);
    }
    const double count = std::max<double>(1, static_cast<double>(now.size()));
    write_(cat("    [Update] Layer ", parameter.layer, ", param ", shown(static_cast<int>(i)),
               " data: ", data / count, "; diff: ", change / count));
  }
  before_.clear();
}

}  // namespace crema

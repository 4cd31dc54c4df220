// Parts of a pass, and nets that a program begins to look into.
#include <vector>

#include "base/error.h"
#include "net/net.h"
#include "net/plan/arena.h"
#include "net/plan/plan.h"

namespace crema {
namespace {

bool in_range(const Node& node, int first, int last) {
  return !node.members.empty() && node.members.back() >= first && node.members.back() <= last;
}

// The nodes of a plan that run in a pass of these layers, with the conversions of their inputs.
std::vector<bool> nodes_in_range(const Plan& plan, int first, int last) {
  std::vector<bool> runs(plan.nodes.size(), false), read(plan.values.size(), false);
  for (size_t i = plan.nodes.size(); i-- > 0;) {
    const PlanNode& node = plan.nodes[i];
    const bool converts = node.members.empty() && read[node.tops[0]];
    runs[i] = converts || in_range(node, first, last);
    for (const int id : node.bottoms) read[id] = read[id] || runs[i];
  }
  return runs;
}

void check_parts(const NetOptions& options) {
  require(options.keep_blobs,
          "a part of a pass needs a net that keeps its blobs: this one is planned as a whole");
}

}  // namespace

void Net::forward_layers(uint64_t pass, int first, int last) {
  check_parts(options_);
  update_source_shapes(pass, first, last);
  with_weights([&] {
    Plan& plan = ready();
    if (training()) ++weights_->version;
    const std::vector<bool> runs = nodes_in_range(plan, first, last);
    const BatchShare samples = share();
    for (size_t i = 0; i < runs.size(); ++i) {
      if (!runs[i]) continue;
      start_pass(pass, plan.nodes[i], samples);
      forward(plan.nodes[i]);
    }
    context_.join();
  });
}

void Net::backward_layers(int first, int last) { backward_layers(first, last, {}); }

void Net::backward_layers(int first, int last, const Instead& instead) {
  check_parts(options_);
  diffs_are_clear_ = false;
  Plan& plan = ready();
  const std::vector<bool> runs = nodes_in_range(plan, last, first);
  for (size_t i = runs.size(); i-- > 0;) {
    if (runs[i] && plan.nodes[i].backward) backward(plan.nodes[i], true, instead);
  }
  context_.join();
}

void Net::look_into(bool gradients, bool rows) {
  options_.keep_blobs = true;
  options_.backward = options_.backward || gradients;
  options_.forward_only = options_.forward_only && !gradients;
  // Others would write into a shared one.
  options_.arena = std::make_shared<ArenaPool>();
  drop_plans();
  if (rows && !options_.row_major) store_in_rows();
  if (planned().options.backward && !parameter_diff_) place_diffs();
  // This net's results do not affect the training of the net that it shares parameters with.
  for (Parameter& parameter : graph_.parameters) {
    const Tensor& data = parameter.data;
    if (gradients && options_.share && parameter.diff)
      parameter.diff = Tensor(context_, parameter.shape, data.dtype(), data.format());
  }
  ++generation_;
}

void Net::plan_gradients() {
  options_.backward = true;
  options_.forward_only = false;
  for (const Node& node : graph_.nodes) {
    if (!node.bottoms.empty()) continue;
    for (const int value : node.tops) graph_.values[value].keep = true;
  }
  drop_plans();
  if (planned().options.backward && !parameter_diff_) place_diffs();
  ++generation_;
}

void Net::keep_value(int value) {
  graph_.values[value].keep = true;
  drop_plans();
  ++generation_;
}

void Net::set_rounding(bool rounds) {
  if (options_.rounds == rounds) return;
  options_.rounds = rounds;
  drop_plans();
  ++generation_;
}

void Net::plan_like(const Net& other) {
  options_.row_major = other.options_.row_major;
  options_.precision = other.options_.precision;
  drop_plans();
  ++generation_;
}

}  // namespace crema

// Parts of a pass, and nets that a program begins to look into.
#include <algorithm>

#include "base/error.h"
#include "net/arena.h"
#include "net/net.h"
#include "net/plan.h"

namespace crema {
namespace {

bool in_range(const Node& node, int first, int last) {
  return !node.members.empty() && node.members.back() >= first && node.members.back() <= last;
}

void check_parts(const NetOptions& options) {
  require(options.keep_blobs,
          "a part of a pass needs a net that keeps its blobs: this one is planned as a whole");
}

}  // namespace

void Net::forward_layers(uint64_t pass, int first, int last) {
  check_parts(options_);
  const auto is_source = [&](const Node& node) {
    return node.bottoms.empty() && in_range(node, first, last);
  };
  if (std::any_of(graph_.nodes.begin(), graph_.nodes.end(), is_source)) update_source_shapes(pass);
  refresh_halves();
  Plan& plan = ready();
  const BatchShare samples = share();
  for (PlanNode& node : plan.nodes) {
    if (!in_range(node, first, last)) continue;
    start_pass(pass, node, samples);
    forward(node);
  }
  context_.join();
}

void Net::backward_layers(int first, int last) {
  check_parts(options_);
  diffs_are_clear_ = false;
  Plan& plan = ready();
  for (auto node = plan.nodes.rbegin(); node != plan.nodes.rend(); ++node) {
    if (node->backward && in_range(*node, last, first)) backward(*node, true);
  }
  context_.join();
}

void Net::look_into(bool gradients) {
  options_.keep_blobs = true;
  options_.backward = options_.backward || gradients;
  // Others would write into a shared one.
  options_.arena = std::make_shared<ArenaPool>();
  plan_.reset();
  other_plan_.reset();
  if (planned().options.backward && !parameter_diff_) place_diffs();
  // What this net computes is nothing to the training of the one that it shares parameters with.
  for (Parameter& parameter : graph_.parameters) {
    const Tensor& data = parameter.data;
    if (gradients && options_.share && parameter.diff)
      parameter.diff = Tensor(context_, parameter.shape, data.dtype(), data.format());
  }
  ++generation_;
}

void Net::plan_like(const Net& other) {
  options_.row_major = other.options_.row_major;
  options_.precision = other.options_.precision;
  plan_.reset();
  other_plan_.reset();
  ++generation_;
}

}  // namespace crema

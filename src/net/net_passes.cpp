// A net's forward and backward passes over its plan.
#include <algorithm>

#include "device/communicator.h"
#include "device/range.h"
#include "kernels/pointwise/add.h"
#include "net/forward_replay.h"
#include "net/graph/graph_builder.h"
#include "net/net.h"
#include "net/plan/plan.h"

namespace crema {

namespace {

// Sets Context::overlap for a scope; the destructor switches it off again.
class OverlapDuring {
 public:
  OverlapDuring(Context& context, bool on) : context_(context) { context_.overlap = on; }
  ~OverlapDuring() { context_.overlap = false; }
  OverlapDuring(const OverlapDuring&) = delete;
  OverlapDuring& operator=(const OverlapDuring&) = delete;

 private:
  Context& context_;
};

void zero_gradients(Context& context, const Backward& arguments) {
  for (const Tensor& diff : arguments.bottom_diff) {
    if (diff) zero(context, diff);
  }
  for (size_t k = 0; k < arguments.parameter_diff.size(); ++k) {
    const Tensor& diff = arguments.parameter_diff[k];
    if (diff && !arguments.accumulate[k]) zero(context, diff);
  }
}

}  // namespace

void Net::forward(uint64_t pass) {
  begin_pass(pass);
  with_weights([&] {
    run_sources(pass);
    forward_or_replay(pass);
  });
}

void Net::forward_or_replay(uint64_t pass) {
  if (!replays()) {
    if (replay_ && live_pass_ == replay_->live_pass()) set_live_pass(nullptr);
    return forward_rest();
  }
  if (!replay_) replay_ = std::make_unique<ForwardReplay>(context_);
  if (live_pass_ != replay_->live_pass()) set_live_pass(replay_->live_pass());
  replay_->run(ready(), pass, [this] { forward_rest(); });
}

bool Net::replays() {
  if (context_.device() != Device::gpu || !options_.capture || observer_) return false;
  return !ready().options.backward && !dynamic() &&
         (!context_.world() || context_.world()->recordable());
}

void Net::forward_sources(uint64_t pass) {
  begin_pass(pass);
  refresh_copies();
  run_sources(pass);
}

void Net::begin_pass(uint64_t pass) {
  const auto is_stale = [](const Node& node) { return node.stale; };
  if (std::any_of(graph_.nodes.begin(), graph_.nodes.end(), is_stale)) {
    infer_shapes(graph_);
    drop_plans();
  }
  update_source_shapes(pass);
}

void Net::run_sources(uint64_t pass) {
  const Range range("sources");
  Plan& plan = ready();
  // This pass changes running statistics, and an update the weights.
  if (training()) ++weights_->version;
  const BatchShare samples = share();
  for (PlanNode& node : plan.nodes) start_pass(pass, node, samples);
  for (size_t i = 0; i < plan.host_nodes; ++i) forward(plan.nodes[i]);
}

void Net::start_pass(uint64_t pass, PlanNode& node, const BatchShare& samples) {
  Forward& forward = node.arguments.forward;
  Backward& backward = node.arguments.backward;
  forward.pass = backward.pass = pass;
  forward.share = backward.share = samples;
  for (Forward& micro_batch : node.arguments.micro_batches) micro_batch.pass = pass;
}

bool Net::works_on_host() { return ready().host_nodes > 0; }

void Net::forward_rest(const SideWork& side_work, bool then_backward) {
  const Range range("forward");
  Plan& plan = ready();
  const OverlapDuring overlap(context_, plan.options.overlap && !observer_);
  if (side_work) context_.on_side_stream(0, side_work);
  for (size_t i = plan.host_nodes; i < plan.nodes.size(); ++i) {
    if (i + 1 == plan.nodes.size() || plan.nodes[i].joins) context_.join();
    if (plan.micro_batches.has(static_cast<int>(i))) {
      forward_micro_batches(plan);
      i = static_cast<size_t>(plan.micro_batches.last);
    } else {
      forward(plan.nodes[i]);
    }
  }
  if (!then_backward) context_.join();
}

void Net::forward_micro_batches(Plan& plan) {
  for (int64_t k = 0; k < plan.micro_batches.parts; ++k) {
    for (int i = plan.micro_batches.first; i <= plan.micro_batches.last; ++i) {
      const PlanNode& node = plan.nodes[i];
      run(node, false, [&] {
        if (!node.is_view) node.layer->forward(context_, node.arguments.micro_batches[k]);
      });
    }
  }
}

void Net::forward(PlanNode& node) {
  if (node.stale) return;
  run(node, false, [&] {
    if (node.shapes.idle && !node.shapes.dynamic) {
      for (const Tensor& top : node.arguments.forward.top) zero(context_, top);
      for (const int id : node.tops) {
        const PlanValue& top = plan_->values[id];
        if (top.loss_weight != 0 && plan_->loss_shares(top).count)
          zero(context_, plan_->loss_count(top));
      }
    } else if (!node.is_view) {
      node.layer->forward(context_, node.arguments.forward);
    }
  });
  if (node.shapes.dynamic && plan_->apply_dynamic_shapes(context_, node, graph_.parameters))
    ++generation_;
}

void Net::set_live_pass(const uint64_t* pass) {
  live_pass_ = pass;
  for (PlanNode& node : ready().nodes)
    node.arguments.forward.live_pass = node.arguments.backward.live_pass = pass;
}

const std::set<int>& Net::cleared_parameters() { return ready().cleared; }

void Net::clear_diffs() {
  if (diffs_are_clear_) return;
  for (int parameter : ready().cleared) zero(context_, graph_.parameters[parameter].diff);
  diffs_are_clear_ = true;
}

void Net::backward(bool accumulate, const SideWork& side_work, const SideWork& early,
                   const std::function<void(int)>& after) {
  const Range range("backward");
  if (!accumulate) clear_diffs();
  diffs_are_clear_ = false;
  Plan& plan = ready();
  const OverlapDuring overlap(context_, plan.options.overlap && !observer_);
  if (side_work) context_.on_side_stream(0, side_work);
  for (auto node = plan.nodes.rbegin(); node != plan.nodes.rend(); ++node) {
    if (!node->backward) continue;
    backward(*node, accumulate);
    if (early && &*node == &plan.nodes[plan.early_node])
      context_.on_side_stream(node->side_stream, early);
    if (after) after(static_cast<int>(&*node - plan.nodes.data()));
  }
  context_.join();
}

void Net::backward(PlanNode& node, bool accumulate, const Instead& instead) {
  Backward& arguments = node.arguments.backward;
  for (size_t k = 0; k < arguments.accumulate.size(); ++k)
    arguments.accumulate[k] = accumulate || node.arguments.accumulate[k];
  // Work for a top's gradient comes before, for a bottom's after.
  const auto add_up_diffs = [&](bool of_tops) {
    for (const DiffSum& sum : node.diff_sums) {
      const bool of_top =
          std::find(node.tops.begin(), node.tops.end(), sum.value) != node.tops.end();
      if (of_top == of_tops) add_up(context_, sum.parts, sum.sum);
    }
  };
  run(node, true, [&] {
    add_up_diffs(true);
    for (const Recomputation& recomputed : node.recomputations)
      plan_->nodes[recomputed.node].layer->recompute(context_, recomputed.arguments);
    if (node.shapes.idle) {
      zero_gradients(context_, arguments);
    } else if (instead && instead(node)) {
      // done
    } else if (!node.is_view) {
      node.layer->backward(context_, arguments);
    } else if (arguments.bottom_diff[0] &&
               arguments.bottom_diff[0].raw() != arguments.top_diff[0].raw()) {
      copy(context_, arguments.top_diff[0], arguments.bottom_diff[0]);
    }
    add_up_diffs(false);
  });
}

}  // namespace crema

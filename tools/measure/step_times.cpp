#include "tools/measure/step_times.h"

#include <numeric>
#include <set>

#include "net/plan/plan.h"

namespace crema {

namespace {

// Longer than the host takes to queue a step in one direction.
constexpr double kQueueing = 0.05;

}  // namespace

double StepTimes::Side::sum() const {
  return std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0);
}

StepTimes::StepTimes(Net& net, bool backward)
    : net_(net), backward_(backward), watch_(net.context()) {
  net.set_observer([this](const Net::StepInfo& step, bool begin) { observe(step, begin); });
}

StepTimes::~StepTimes() { net_.set_observer({}); }

void StepTimes::observe(const Net::StepInfo& info, bool begin) {
  if (begin) return;
  watch_.mark();
  const PlanNode& node = *info.node;
  if (!info.backward) {
    // A node that runs once for each micro-batch is one step.
    const size_t index = indexes_.try_emplace(&node, indexes_.size()).first->second;
    if (index == steps_.size()) {
      Step step;
      step.members = node.members;
      for (int member : node.members) step.layers.push_back(net_.graph().net.layer(member).name());
      step.name = step.layers.empty() ? node.message.name() : join(step.layers, " + ");
      step.forward = {true, {}, forward_work(node)};
      steps_.push_back(std::move(step));
    }
    order_.push_back(&steps_[index].forward);
  } else {
    Side& side = steps_[indexes_.at(&node)].backward;
    if (!side.runs) side = {true, {}, backward_work(node)};
    order_.push_back(&side);
  }
}

StepTimes::Pass StepTimes::run(uint64_t pass) {
  indexes_.clear();
  order_.clear();
  watch_.hold(2 * kQueueing * static_cast<double>(steps_.size()));
  watch_.mark();
  net_.forward(pass);
  const size_t forward_steps = order_.size();
  if (backward_) net_.backward();
  const std::vector<double> laps = watch_.laps();
  Pass sums{0, 0};
  std::set<Side*> seen;
  for (size_t i = 0; i < order_.size(); ++i) {
    if (seen.insert(order_[i]).second) {
      order_[i]->milliseconds.push_back(laps[i]);
    } else {
      order_[i]->milliseconds.back() += laps[i];
    }
    (i < forward_steps ? sums.forward : sums.backward) += laps[i];
  }
  return sums;
}

void StepTimes::clear() {
  for (Step& step : steps_) {
    step.forward.milliseconds.clear();
    step.backward.milliseconds.clear();
  }
}

}  // namespace crema

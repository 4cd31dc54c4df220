#include "tools/measure/step_times.h"

#include "net/plan/plan.h"

namespace crema {

namespace {

// Longer than the host takes to queue a step in one direction.
constexpr double kQueueing = 0.05;

}  // namespace

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
    const size_t index = indexes_.size();
    indexes_[&node] = index;
    if (index == steps_.size()) {
      std::vector<std::string> names;
      for (int member : node.members) names.push_back(net_.graph().net.layer(member).name());
      steps_.push_back({names.empty() ? node.message.name() : join(names, " + "),
                        node.members,
                        {true, 0, forward_work(node)},
                        {}});
    }
    order_.push_back(&steps_[index].forward);
  } else {
    Side& side = steps_[indexes_.at(&node)].backward;
    if (!side.runs) side = {true, 0, backward_work(node)};
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
  for (size_t i = 0; i < order_.size(); ++i) {
    order_[i]->milliseconds += laps[i];
    (i < forward_steps ? sums.forward : sums.backward) += laps[i];
  }
  return sums;
}

void StepTimes::clear() {
  for (Step& step : steps_) step.forward.milliseconds = step.backward.milliseconds = 0;
}

}  // namespace crema

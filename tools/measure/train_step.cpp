#include "tools/measure/train_step.h"

#include <chrono>

#include "solver/iteration/iteration.h"
#include "solver/iteration/optimizer.h"
#include "tools/measure/memory_use.h"

namespace crema {

namespace {

constexpr float rate = 1e-4f;  // small, so that the loss does not diverge on random data

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

SolverParameter plain_recipe() {
  SolverParameter solver;
  solver.set_type("SGD");
  solver.set_base_lr(rate);
  solver.set_lr_policy("fixed");
  solver.set_momentum(0.9f);
  solver.set_weight_decay(5e-4f);
  return solver;
}

SolverParameter at_small_rate(SolverParameter recipe) {
  recipe.set_base_lr(rate);
  recipe.set_lr_policy("fixed");
  recipe.clear_warmup_iter();
  recipe.clear_rampup_interval();
  recipe.clear_min_lr();
  return recipe;
}

class TrainStep {
 public:
  TrainStep(Net& net, const SolverParameter& recipe)
      : net_(net), recipe_(at_small_rate(recipe)), optimizer_(recipe_, net) {
    if (net.context().device() == Device::cpu) return;
    gpu_ = make_iteration({net, optimizer_, rates_}, 1, net.options().capture);
  }

  // Seconds per step, measured over `steps` of them.
  double run(int steps) {
    const auto begin = Clock::now();
    if (gpu_) {
      gpu_->begin({static_cast<int64_t>(pass_), pass_, steps});
      pass_ += steps;
    }
    for (int i = 0; i < steps && !gpu_; ++i) {
      net_.forward(pass_);
      net_.backward();
      optimizer_.update(rate, static_cast<int64_t>(pass_++));
    }
    net_.context().synchronize();
    return seconds_since(begin) / steps;
  }

  // Seconds per update, of several measurements.
  std::vector<double> updates() {
    update(1);
    std::vector<double> seconds;
    while (seconds.size() < 11) seconds.push_back(update(5));
    return seconds;
  }

  double loss() {
    net_.forward(pass_++);
    return net_.loss();
  }

 private:
  // From the gradients that there are.
  double update(int times) {
    net_.context().synchronize();
    const auto begin = Clock::now();
    for (int i = 0; i < times; ++i) optimizer_.update(rate, static_cast<int64_t>(pass_));
    net_.context().synchronize();
    return seconds_since(begin) / times;
  }

  Net& net_;
  const SolverParameter recipe_;
  Optimizer optimizer_;
  Rates rates_{recipe_};
  std::unique_ptr<Iteration> gpu_;
  uint64_t pass_ = 0;
};

size_t peak_memory(Net& net) {
  if (net.context().device() == Device::cpu) return growth_of_resident_set();
  MemoryKinds memory = net.memory();
  memory.history = memory.parameters * net.options().histories;
  return memory.total();
}

}  // namespace

TrainStepSeconds measure_train_step(const RepeatFlags& flags, Net& net,
                                    const SolverParameter& solver) {
  TrainStep step(net, solver);
  step.run(TimingFlags().warmup);
  TrainStepSeconds result;
  const Device device = net.context().device();
  result.step = median(time_steps(flags, device, [&](int steps) { return step.run(steps); }).each);
  result.update = median(step.updates());
  return result;
}

NetTimes time_train_step(ProgramLog& log, const TimingFlags& flags, Net& net,
                         const SolverParameter* solver) {
  TrainStep step(net, solver ? *solver : plain_recipe());
  log.info(cat("Train step: loss before: ", step.loss()));
  if (flags.warmup > 0) step.run(flags.warmup);
  const StepSeconds seconds =
      time_steps(flags, net.context().device(), [&](int steps) { return step.run(steps); });
  NetTimes times = log_speed(log, "Train step", "step", net, seconds, peak_memory(net));
  log.info(cat("Train step: loss after: ", step.loss()));
  std::vector<double> updates = step.updates();
  for (double& update : updates) update *= 1e3;
  times.update = timing_of(updates);
  time_steps_of(net, flags, true, &times);
  return times;
}

}  // namespace crema

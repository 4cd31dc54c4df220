#include "tools/scale/measure_profile.h"

#include "net/records.h"
#include "tools/measure/step_times.h"

namespace crema {

namespace {

// This many passes, or as many as fit into that time.
constexpr int passes_timed = 10;
constexpr double longest = 3;  // seconds

void measure_steps(Net& net, StepProfile* profile) {
  StepTimes times(net);
  uint64_t pass = 0;
  times.run(pass++);  // the first one may still choose kernels
  times.clear();
  double seconds = 0;
  do {
    const StepTimes::Pass taken = times.run(pass++);
    seconds += 1e-3 * (taken.forward + taken.backward);
  } while (pass <= passes_timed && seconds < longest);
  const auto passes = static_cast<double>(pass - 1);
  for (const StepTimes::Step& step : times.steps()) {
    profile->forward += 1e-3 * step.forward.sum() / passes;
    profile->backward.push_back(1e-3 * step.backward.sum() / passes);
  }
}

}  // namespace

StepProfile measure_profile(const RepeatFlags& flags, Net& net, const SolverParameter& solver,
                            const std::string& device) {
  StepProfile profile;
  profile.net = net.name();
  profile.device = device;
  profile.batch = batch_of(net);
  profile.iter_size = solver.iter_size();
  profile.element_size = static_cast<int64_t>(size_of(net.options().dtype));
  measure_steps(net, &profile);
  const TrainStepSeconds whole = measure_train_step(flags, net, solver);
  profile.update = whole.update;
  const double sum = profile.forward + profile.backward_seconds();
  const double passes = whole.step - whole.update;
  if (sum > 0 && passes > 0) {
    profile.forward *= passes / sum;
    for (double& seconds : profile.backward) seconds *= passes / sum;
  }
  profile.gradients = gradient_ranges(net);
  check_profile(profile);
  return profile;
}

}  // namespace crema

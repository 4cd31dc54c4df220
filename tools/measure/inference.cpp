#include "tools/measure/inference.h"

#include <chrono>

#include "tools/measure/memory_use.h"

namespace crema {

namespace {

size_t memory_of_passes(Net& net) {
  return net.context().device() == Device::cpu ? growth_of_resident_set() : net.memory().total();
}

}  // namespace

NetTimes time_inference(ProgramLog& log, const TimingFlags& flags, Net& net) {
  uint64_t pass = 0;
  const auto run = [&](int passes) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < passes; ++i) net.forward(pass++);
    net.context().synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / passes;
  };
  if (flags.warmup > 0) run(flags.warmup);
  net.check();
  const StepSeconds seconds = time_steps(flags, net.context().device(), run);
  NetTimes times = log_speed(log, "Inference", "pass", net, seconds, memory_of_passes(net));
  time_steps_of(net, flags, false, &times);
  return times;
}

}  // namespace crema

#include "tools/measure/inference.h"

#include <chrono>

#include "tools/measure/memory_use.h"

namespace crema {

namespace {

constexpr int kWarmUpPasses = 5;

size_t memory_of_passes(Net& net) {
  return net.context().device() == Device::cpu ? growth_of_resident_set() : net.memory().total();
}

}  // namespace

void time_inference(ProgramLog& log, const RepeatFlags& flags, Net& net) {
  uint64_t pass = 0;
  const auto run = [&](int passes) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < passes; ++i) net.forward(pass++);
    net.context().synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / passes;
  };
  run(kWarmUpPasses);
  net.check();
  const std::vector<double> times = time_steps(flags, run);
  log_speed(log, "Inference", "pass", net, times, memory_of_passes(net));
}

}  // namespace crema

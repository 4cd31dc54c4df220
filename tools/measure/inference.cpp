#include "tools/measure/inference.h"

#include <chrono>
#include <cstdio>

#include "net/records.h"
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
  const double seconds = median(times);
  const int64_t batch = batch_of(net);
  char line[160];
  std::snprintf(line, sizeof line, "Inference: batch %lld  %.3f ms/pass  %.0f img/s  %.0f MiB",
                static_cast<long long>(batch), 1e3 * seconds, static_cast<double>(batch) / seconds,
                static_cast<double>(memory_of_passes(net)) / (1 << 20));
  log.info(cat(line, "  (median of ", times.size(), " measurements)"));
}

}  // namespace crema

#include "tools/measure/repeated.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "net/records.h"

namespace crema {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsInAll = 2, kSecondsAGroup = 0.05, kSecondsOfLayers = 1;

}  // namespace

StepSeconds time_steps(const RepeatFlags& flags, Device device,
                       const std::function<double(int)>& run) {
  StepSeconds seconds;
  if (flags.iterations_given) {
    for (int i = 0; i < flags.iterations; ++i) seconds.each.push_back(run(1));
    return seconds;
  }
  if (device == Device::gpu)
    seconds.group = std::max(1, static_cast<int>(kSecondsAGroup / std::max(run(1), 1e-6)));
  const auto end = Clock::now() + std::chrono::duration<double>(kSecondsInAll);
  while (Clock::now() < end || seconds.each.size() < 5) seconds.each.push_back(run(seconds.group));
  return seconds;
}

NetTimes log_speed(ProgramLog& log, const char* what, const char* unit, Net& net,
                   const StepSeconds& seconds, size_t memory_bytes) {
  std::vector<double> milliseconds;
  for (const double each : seconds.each) milliseconds.push_back(1e3 * each);
  NetTimes times;
  times.batch = batch_of(net);
  times.memory_bytes = memory_bytes;
  times.group = seconds.group;
  times.whole = timing_of(milliseconds);
  char line[160];
  std::snprintf(line, sizeof line, "%s: batch %lld  %.3f ms/%s  %.0f img/s  %.0f MiB", what,
                static_cast<long long>(times.batch), times.whole.p50, unit,
                times.samples_per_second(), static_cast<double>(memory_bytes) / (1 << 20));
  log.answer(cat(line, "  (median of ", seconds.each.size(), " measurements)"));
  log.answer(cat(what, ": ", percentiles_text(times.whole),
                 times.group > 1 ? cat(" (of groups of ", times.group, ")") : ""));
  return times;
}

void time_steps_of(Net& net, const TimingFlags& flags, bool backward, NetTimes* times) {
  StepTimes steps(net, backward);
  for (int i = 0; i < std::max(1, std::min(2, flags.warmup)); ++i) steps.run(i);
  steps.clear();
  const auto end = Clock::now() + std::chrono::duration<double>(kSecondsOfLayers);
  for (int i = 0; i < flags.iterations && (i == 0 || Clock::now() < end); ++i) steps.run(i + 1);
  times->steps = steps.steps();
}

}  // namespace crema

#include "tools/measure/repeated.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "net/records.h"

namespace crema {

namespace {

constexpr double kSecondsInAll = 2, kSecondsAGroup = 0.05;

}  // namespace

std::vector<double> time_steps(const RepeatFlags& flags, const std::function<double(int)>& run) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  if (flags.iterations_given) {
    for (int i = 0; i < flags.iterations; ++i) times.push_back(run(1));
    return times;
  }
  const int group = std::max(1, static_cast<int>(kSecondsAGroup / std::max(run(1), 1e-6)));
  const auto end = Clock::now() + std::chrono::duration<double>(kSecondsInAll);
  while (Clock::now() < end || times.size() < 5) times.push_back(run(group));
  return times;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void log_speed(ProgramLog& log, const char* what, const char* unit, Net& net,
               const std::vector<double>& seconds, size_t memory_bytes) {
  const double each = median(seconds);
  const int64_t batch = batch_of(net);
  char line[160];
  std::snprintf(line, sizeof line, "%s: batch %lld  %.3f ms/%s  %.0f img/s  %.0f MiB", what,
                static_cast<long long>(batch), 1e3 * each, unit, static_cast<double>(batch) / each,
                static_cast<double>(memory_bytes) / (1 << 20));
  log.info(cat(line, "  (median of ", seconds.size(), " measurements)"));
}

}  // namespace crema

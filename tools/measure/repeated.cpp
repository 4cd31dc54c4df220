#include "tools/measure/repeated.h"

#include <algorithm>
#include <chrono>

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

}  // namespace crema

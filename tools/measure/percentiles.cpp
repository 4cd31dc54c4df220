#include "tools/measure/percentiles.h"

#include <algorithm>
#include <numeric>

namespace crema {

namespace {

double percentile_of_sorted(const std::vector<double>& sorted, double percent) {
  const double place = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  return percentile_of_sorted(values, percent);
}

double median(std::vector<double> values) { return percentile(std::move(values), 50); }

Timing timing_of(std::vector<double> milliseconds) {
  if (milliseconds.empty()) return {};
  std::sort(milliseconds.begin(), milliseconds.end());
  const double sum = std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0);
  return {milliseconds.size(),
          sum / static_cast<double>(milliseconds.size()),
          milliseconds.front(),
          milliseconds.back(),
          percentile_of_sorted(milliseconds, 50),
          percentile_of_sorted(milliseconds, 90),
          percentile_of_sorted(milliseconds, 99)};
}

}  // namespace crema

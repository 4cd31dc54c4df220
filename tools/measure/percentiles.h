// Percentiles, and what is reported of repeated measurements.
#pragma once

#include <cstddef>
#include <vector>

namespace crema {

// The value below which `percent` of the values are, interpolated linearly between neighbours. There
// must be at least one value.
double percentile(std::vector<double> values, double percent);
double median(std::vector<double> values);

// Repeated measurements of one thing, in milliseconds.
struct Timing {
  size_t count = 0;  // 0: not measured
  double mean = 0, least = 0, most = 0;
  double p50 = 0, p90 = 0, p99 = 0;
};
Timing timing_of(std::vector<double> milliseconds);

}  // namespace crema

#include "solver/events/parameter_histograms.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"

namespace crema {
namespace {

constexpr int kBuckets = 64;

}  // namespace

event::Histogram histogram_of(const std::vector<float>& values) {
  event::Histogram histogram;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double v = value;
    histogram.min = histogram.count == 0 ? v : std::min(histogram.min, v);
    histogram.max = histogram.count == 0 ? v : std::max(histogram.max, v);
    ++histogram.count;
    histogram.sum += v;
    histogram.sum_of_squares += v * v;
  }
  if (histogram.count == 0) return histogram;
  const double range = histogram.max - histogram.min;
  const int buckets = range > 0 ? kBuckets : 1;
  histogram.counts.assign(buckets, 0);
  for (int i = 1; i <= buckets; ++i)
    histogram.limits.push_back(histogram.min + range * i / buckets);
  histogram.limits.back() = histogram.max;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double place = range > 0 ? (value - histogram.min) / range * buckets : 0;
    ++histogram.counts[std::min(static_cast<int>(place), buckets - 1)];
  }
  return histogram;
}

std::vector<event::Histogram> parameter_histograms(Net& net, float gradient_scale) {
  std::vector<event::Histogram> all;
  const auto add = [&](const char* kind, const Parameter& parameter, const Tensor& tensor,
                       float scale) {
    if (!tensor) return;
    std::vector<float> values = to_floats(net.context(), tensor);
    for (float& value : values) value *= scale;
    event::Histogram histogram = histogram_of(values);
    if (histogram.count == 0) return;
    histogram.tag = cat(kind, "/", parameter.layer, "/", parameter.index);
    all.push_back(std::move(histogram));
  };
  for (const Parameter& parameter : net.parameters()) {
    add("weights", parameter, parameter.data, 1);
    if (parameter.learned && parameter.lr_mult != 0)
      add("gradients", parameter, parameter.diff, gradient_scale);
  }
  return all;
}

}  // namespace crema

#include "exchange/quantize/value_histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/strings.h"

namespace crema {
namespace {

constexpr double kKept = 0.9999;  // share of the values below RangeRule::percentile

// Sum of p * log(p / q) over the bins of p, whose last one has all larger values, too. q is p with as many
// levels as integers: the values of a level are spread over its bins that are not empty.
double divergence(std::span<const int64_t> p, int64_t above, int levels) {
  const auto bins = static_cast<int64_t>(p.size());
  const double total = static_cast<double>(std::accumulate(p.begin(), p.end(), above)),
               kept = total - static_cast<double>(above);
  if (kept == 0) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (int level = 0; level < levels; ++level) {
    const int64_t begin = level * bins / levels, end = (level + 1) * bins / levels;
    int64_t values = 0, filled = 0;
    for (int64_t i = begin; i < end; ++i) {
      values += p[i];
      filled += p[i] > 0;
    }
    for (int64_t i = begin; i < end; ++i) {
      const double here = static_cast<double>(p[i] + (i == bins - 1 ? above : 0));
      if (here == 0) continue;
      constexpr double kAlmostNone = 1e-9;  // where only clipped values are
      const double q = filled == 0 || p[i] == 0
                           ? kAlmostNone
                           : static_cast<double>(values) / static_cast<double>(filled) / kept;
      sum += here / total * std::log(here / total / q);
    }
  }
  return sum;
}

}  // namespace

RangeRule range_rule_named(const std::string& name) {
  const std::vector<std::string> names = {"minmax", "percentile", "entropy", "mse"};
  const auto found = std::find(names.begin(), names.end(), name);
  require(found != names.end(), "-range ", name, ": expected ", join(names, ", "),
          did_you_mean(name, names));
  return static_cast<RangeRule>(found - names.begin());
}

void ValueHistogram::add(std::span<const float> values) {
  float most = 0, least = 0;
  for (const float value : values) {
    require(std::isfinite(value), "a value is ", value, ", so no range of integers can be chosen");
    most = std::max(most, value);
    least = std::min(least, value);
  }
  has_negative_ = has_negative_ || least < 0;
  widen(std::max(most, -least));
  count_ += static_cast<int64_t>(values.size());
  for (const float value : values) {
    if (value == 0) {
      ++zeros_;
    } else {
      ++bins_[std::min(kBins - 1, static_cast<int>(std::abs(value) / width_))];
    }
  }
}

// So that this magnitude has a bin.
void ValueHistogram::widen(float magnitude) {
  largest_ = std::max(largest_, magnitude);
  if (magnitude == 0) return;
  if (width_ == 0) width_ = std::max(magnitude / kBins, std::numeric_limits<float>::min());
  while (magnitude > width_ * kBins) {
    for (int i = 0; i < kBins / 2; ++i) bins_[i] = bins_[2 * i] + bins_[2 * i + 1];
    std::fill(bins_.begin() + kBins / 2, bins_.end(), 0);
    width_ *= 2;
  }
}

int64_t ValueHistogram::values_from(int bin) const {
  return std::accumulate(bins_.begin() + bin, bins_.end(), int64_t{0});
}

int ValueHistogram::bins_for_percentile() const {
  const double wanted = kKept * static_cast<double>(count_ - zeros_);
  int64_t below = 0;
  for (int i = 0; i < kBins; ++i) {
    below += bins_[i];
    if (static_cast<double>(below) >= wanted) return i + 1;
  }
  return kBins;
}

int ValueHistogram::bins_for_entropy(int levels) const {
  constexpr int kStep = 8;  // bins
  int best = kBins;
  double least = std::numeric_limits<double>::infinity();
  for (int bins = (levels / kStep + 1) * kStep; bins <= kBins; bins += kStep) {
    const double here = divergence(std::span(bins_).first(bins), values_from(bins), levels);
    if (here < least) {
      least = here;
      best = bins;
    }
  }
  return best;
}

float ValueHistogram::range_of_mse(int levels) const {
  constexpr int kTries = 128;
  float best = largest_;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 1; i <= kTries; ++i) {
    const double range = static_cast<double>(largest_) * i / kTries, step = range / levels;
    double sum = 0;
    for (int bin = 0; bin < kBins; ++bin) {
      if (bins_[bin] == 0) continue;
      const double value = (bin + 0.5) * width_,
                   rounded = step * std::min<double>(std::rint(value / step), levels);
      sum += static_cast<double>(bins_[bin]) * (value - rounded) * (value - rounded);
    }
    if (sum < least) {
      least = sum;
      best = static_cast<float>(range);
    }
  }
  return best;
}

float ValueHistogram::range(RangeRule rule, int levels) const {
  if (count_ == zeros_) return 0;
  switch (rule) {
    case RangeRule::minmax:
      break;
    case RangeRule::percentile:
      return std::min(largest_, static_cast<float>(bins_for_percentile()) * width_);
    case RangeRule::entropy:
      return std::min(largest_, static_cast<float>(bins_for_entropy(levels)) * width_);
    case RangeRule::mse:
      return range_of_mse(levels);
  }
  return largest_;
}

double ValueHistogram::share_above(float range) const {
  if (range >= largest_) return 0;
  const auto first = static_cast<int>(std::ceil(range / width_));
  return first >= kBins ? 0 : static_cast<double>(values_from(first)) / static_cast<double>(count_);
}

}  // namespace crema

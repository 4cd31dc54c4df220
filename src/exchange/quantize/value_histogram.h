// The magnitudes of a blob's values, and the range of 8-bit integers that suits them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace crema {

// How the largest magnitude that integers reach is chosen. Larger values are clipped to it.
enum class RangeRule {
  minmax,      // the largest one seen: nothing is clipped
  percentile,  // 99.99 percent of the values that are not 0 stay below it
  entropy,     // the distribution changes least: the smallest Kullback-Leibler divergence
  mse,         // the smallest mean squared error of all values
};

// Error with the nearest name for an unknown one.
RangeRule range_rule_named(const std::string& name);

class ValueHistogram {
 public:
  // Error for values that are not finite.
  void add(std::span<const float> values);

  int64_t count() const { return count_; }
  bool has_negative() const { return has_negative_; }
  float largest() const { return largest_; }  // magnitude
  // The largest magnitude that integers from 0 to `levels` reach by this rule; 0 if all values are 0.
  float range(RangeRule rule, int levels) const;
  // The share of all values whose magnitude is above `range`.
  double share_above(float range) const;

 private:
  static constexpr int kBins = 4096;
  void widen(float magnitude);
  int64_t values_from(int bin) const;
  int bins_for_percentile() const;
  int bins_for_entropy(int levels) const;
  float range_of_mse(int levels) const;

  // Values that are not 0, by magnitude: bin i has those in [i * width_, (i + 1) * width_).
  std::vector<int64_t> bins_ = std::vector<int64_t>(kBins);
  float width_ = 0;
  int64_t count_ = 0, zeros_ = 0;
  float largest_ = 0;
  bool has_negative_ = false;
};

}  // namespace crema

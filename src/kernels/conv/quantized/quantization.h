// How a convolution or fully connected layer rounds what it reads and writes to integers of few bits.
#pragma once

#include <optional>
#include <vector>

#include "kernels/pointwise/quantize.h"

namespace crema {

// QuantizedValues for weights whose rows may have different steps.
struct QuantizedWeights {
  // One for all rows, or one for each; none: each pass takes those with which the largest magnitude of
  // each row is the integer `high`.
  std::vector<float> steps;
  float low = -128, high = 127;
  bool follows() const { return steps.empty(); }
  float step(size_t row) const { return steps[steps.size() > 1 ? row : 0]; }
  bool operator==(const QuantizedWeights&) const = default;
};

struct LinearQuantization {
  std::optional<QuantizedValues> x, y;  // none: they stay as they are
  std::optional<QuantizedWeights> w;
  bool operator==(const LinearQuantization&) const = default;
};

}  // namespace crema

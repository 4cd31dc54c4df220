// A maximum that does not lose nan: std::max and comparisons forget one when a number follows it.
#pragma once

#include <cmath>

namespace crema {

// The larger one; nan if one is nan.
inline double larger_or_nan(double a, double b) { return std::isnan(a) || a >= b ? a : b; }

}  // namespace crema

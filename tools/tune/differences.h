// Differences between two lists of numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/larger.h"
#include "base/strings.h"

namespace crema {

struct Difference {
  double relative = 0;  // the norm of the difference, of the larger of the two norms
  double largest = 0;   // of two values at the same place
  bool same = true;     // bit for bit, but that 0 equals -0
};

// nan if a value of one list is nan and the other's is not.
inline Difference difference_of(const std::vector<float>& a, const std::vector<float>& b) {
  Difference found;
  double squares = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    // An infinite norm would make every difference none.
    if (std::isfinite(a[i])) of_a += static_cast<double>(a[i]) * a[i];
    if (std::isfinite(b[i])) of_b += static_cast<double>(b[i]) * b[i];
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    found.same = false;
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    squares += difference * difference;
    found.largest = larger_or_nan(found.largest, difference);
  }
  if (!found.same) found.relative = std::sqrt(squares / std::max(of_a, of_b));
  return found;
}

// "0" for equal values, otherwise "1.2e-07".
inline std::string shown_difference(double value, bool same) {
  if (same) return "0";
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", shown(value));
  return text;
}

}  // namespace crema

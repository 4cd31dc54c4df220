// What parallel_sum() adds up, and where it stores the results.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace crema {

// value(k, row, column) for k < sums, row < rows, column < columns.
struct SumExtent {
  int64_t sums = 1, rows = 1, columns = 1;
};

// out[k] = factor * sum, added to the old value when `accumulate`.
template <typename T>
struct SumTarget {
  T* out;
  T factor = 1;
  bool accumulate = false;
  CREMA_HD void operator()(int64_t k, const double* sum) const {
    const T value = factor * static_cast<T>(*sum);
    out[k] = accumulate ? out[k] + value : value;
  }
};

}  // namespace crema

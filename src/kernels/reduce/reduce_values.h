// Values for parallel_sum(), where matrices are row-major with `columns` columns.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace crema {

// Sum k is the squared length of row k.
template <typename T>
struct SquaredRow {
  const T* rows;
  int64_t columns;
  template <typename>
  CREMA_HD T operator()(int64_t k, int64_t, int64_t column) const {
    const T value = rows[k * columns + column];
    return value * value;
  }
};

// Sum k is the squared distance between row k of a and row k of b.
template <typename T>
struct SquaredDistance {
  const T *a, *b;
  int64_t columns;
  template <typename>
  CREMA_HD T operator()(int64_t k, int64_t, int64_t column) const {
    const T difference = a[k * columns + column] - b[k * columns + column];
    return difference * difference;
  }
};

// The only sum is the squared Frobenius norm of x.
template <typename T>
struct SquaredMatrix {
  const T* x;
  int64_t columns;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t row, int64_t column) const {
    const T value = x[row * columns + column];
    return value * value;
  }
};

}  // namespace crema

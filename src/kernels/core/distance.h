// Squared distances of rows, as values for parallel_sum(): sum k is that of row k of a and row k of
// b.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace crema {

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

}  // namespace crema

// Squared lengths of rows. For .cu files only, like device/parallel.h.
#pragma once

#include "base/host_device.h"

namespace crema {

// For parallel_sum: sum k is the squared length of row k.
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

}  // namespace crema

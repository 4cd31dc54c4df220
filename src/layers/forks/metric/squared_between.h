// Terms of the squared distances between two lists of vectors. For .cu files only.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace crema {

// Term i of sum n * others + k: between vector n of `a` and vector k of `b`.
template <typename T>
struct SquaredBetween {
  const T *a, *b;
  int64_t others, inputs;
  template <typename>
  CREMA_HD T operator()(int64_t sum, int64_t, int64_t i) const {
    const T difference = a[sum / others * inputs + i] - b[sum % others * inputs + i];
    return difference * difference;
  }
};

}  // namespace crema

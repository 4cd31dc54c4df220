// The sums that softmax needs of a position, found in one pass: its largest x and the sum of exp(x
// - largest).
#pragma once

#include <cstdint>
#include <limits>

#include "base/host_device.h"
#include "kernels/pointwise/pointwise_math.h"

namespace crema {

// Calls put(k, at(k)) for k < count; in each group of eight all loads precede the stores.
template <typename C, typename At, typename Put>
CREMA_HD void over_classes(int64_t count, const At& at, const Put& put) {
  constexpr int kGroup = 8;
  for (int64_t first = 0; first < count; first += kGroup) {
    C x[kGroup];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int j = 0; j < kGroup; ++j) x[j] = at(first + j < count ? first + j : first);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int j = 0; j < kGroup; ++j) {
      if (first + j < count) put(first + j, x[j]);
    }
  }
}

template <typename C>
struct SoftmaxSums {
  C largest = std::numeric_limits<C>::lowest();
  C sum = 0;    // of exp(x - largest)
  C below = 0;  // of largest - x
  int64_t count = 0;

  // Adds the values at(0), at(1), ..., at(more - 1); the loads of a group are in flight together.
  template <typename At>
  CREMA_HD void add(int64_t more, const At& at) {
    constexpr int kGroup = 8;
    for (int64_t first = 0; first < more; first += kGroup) {
      C x[kGroup], top = largest;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
      for (int j = 0; j < kGroup; ++j) x[j] = at(first + j < more ? first + j : first);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
      for (int j = 0; j < kGroup; ++j) top = x[j] > top ? x[j] : top;
      raise(top);
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
      for (int j = 0; j < kGroup; ++j) {
        sum += first + j < more ? exp_of(x[j] - top) : C(0);
        below += first + j < more ? top - x[j] : C(0);
      }
      count += more - first < kGroup ? more - first : kGroup;
    }
  }
  // Rescales the sums to a larger maximum.
  CREMA_HD void raise(C top) {
    if (!(top > largest)) return;
    if (count > 0) {
      sum *= exp_of(largest - top);
      below += static_cast<C>(count) * (top - largest);
    }
    largest = top;
  }
};

}  // namespace crema

// What batch normalization computes per channel, once for all its kernels on both devices:
// y = factor (x - mean) + shift, where factor = scale inverse, and inverse = 1 / sqrt(variance + eps).
#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"

namespace crema::batch_norm {

struct Moments {
  double mean, variance;  // the variance is biased
};

// From the sums of h and of h squared over `count` values.
CREMA_HD inline Moments moments_of(double sum, double squares, double count) {
  const double mean = sum / count, variance = squares / count - mean * mean;
  return {mean, variance > 0 ? variance : 0};  // rounding may have made it negative
}

// scale: null where none is learned.
template <typename T>
CREMA_HD T factor_of(T inverse, const T* scale, int64_t c) {
  return scale ? inverse * scale[c] : inverse;
}

// dx = factor g + (h x_factor + constant), element by element: element_gradient() of
// kernels/pointwise/channel_terms.h.
template <typename T>
struct GradientTerms {
  T x_factor, constant;
};

// From the sums of g and of g h over `count` elements, where g is the gradient of y, and h is
// x - mean or, h_is_y, y of a channel whose scale is 1 and shift 0.
template <typename T>
CREMA_HD GradientTerms<T> gradient_terms(T factor, T inverse, double sum_g, double sum_gh,
                                         double count, bool h_is_y) {
  const double shrink = h_is_y ? 1 : static_cast<double>(inverse) * inverse;
  return {static_cast<T>(-factor * shrink * sum_gh / count),
          static_cast<T>(-factor * sum_g / count)};
}

// The gradients of scale and shift; null: not wanted.
template <typename T>
struct LearnedGradients {
  T *scale, *shift;
  bool accumulate_scale, accumulate_shift;

  CREMA_HD void write(int64_t c, T inverse, double sum_g, double sum_gh) const {
    store(scale, c, accumulate_scale, static_cast<T>(inverse * sum_gh));
    store(shift, c, accumulate_shift, static_cast<T>(sum_g));
  }

 private:
  CREMA_HD static void store(T* to, int64_t c, bool accumulate, T value) {
    if (to) to[c] = accumulate ? to[c] + value : value;
  }
};

}  // namespace crema::batch_norm

// GELU of a value, exact and as the tanh approximation (Hendrycks and Gimpel, 2016).
#pragma once

#include "kernels/pointwise/pointwise_math.h"

namespace crema {

template <bool kApproximate>
struct Gelu {
  // P(x), or the approximation's: (1 + tanh(z)) / 2 is the sigmoid of 2 * z.
  template <typename T>
  CREMA_HD static T share(T x) {
    if constexpr (kApproximate) {
      return sigmoid_of(x * (T(1.5957691216057308) + T(0.07135481282627461) * x * x));
    } else {
      return normal_below(x);
    }
  }
  template <typename T>
  CREMA_HD T value(T x) const {
    return x * share(x);
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T x) const {
    const T p = share(x);
    const T slope = kApproximate
                        ? p * (T(1) - p) * (T(1.5957691216057308) + T(0.21406443847882383) * x * x)
                        : T(0.3989422804014327) * exp_of(T(-0.5) * x * x);
    return dy * (p + x * slope);
  }
};

}  // namespace crema

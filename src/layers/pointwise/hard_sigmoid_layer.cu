// HardSigmoid: piecewise linear, from 0 to 1. HardSwish: x times that, with alpha 1/6 and beta 1/2.
//   HardSigmoid: y = h(x)   with h(x) = min(max(alpha * x + beta, 0), 1)
//   HardSwish:   y = x * min(max(x + 3, 0), 6) / 6
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy * alpha where 0 < h(x) < 1, 0 elsewhere; of HardSwish dx = dy * (2 * x + 3) / 6
// where |x| < 3, dy above, 0 below.
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

template <typename T>
CREMA_HD T within(T x, T minimum, T maximum) {
  return x < minimum ? minimum : x > maximum ? maximum : x;
}

struct HardSigmoid {
  static constexpr LayerFacts facts = {
      .kind = LayerKind::activation, .elementwise = true, .least = 0, .most = 1};
  float alpha, beta;
  explicit HardSigmoid(const HardSigmoidParameter& p) : alpha(p.alpha()), beta(p.beta()) {}
  static constexpr bool from_top() { return true; }
  template <typename T>
  CREMA_HD T value(T x) const {
    return within(T(alpha) * x + T(beta), T(0), T(1));
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T y) const {
    return y > 0 && y < 1 ? dy * T(alpha) : T(0);
  }
};

struct HardSwish {
  static constexpr bool from_top() { return false; }
  template <typename T>
  CREMA_HD T value(T x) const {
    return x * within(x + T(3), T(0), T(6)) * T(1.0 / 6);
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T x) const {
    return x <= T(-3) ? T(0) : x >= T(3) ? dy : dy * (T(2) * x + T(3)) * T(1.0 / 6);
  }
};

using HardSigmoidLayer = FunctionLayer<HardSigmoid, HardSigmoidParameter>;

}  // namespace
REGISTER_LAYER(HardSigmoid, HardSigmoidLayer);
REGISTER_LAYER(HardSwish, FunctionLayer<HardSwish>);
}  // namespace crema

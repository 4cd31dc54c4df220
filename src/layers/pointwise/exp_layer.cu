// Exp: a power of a base.
//   y = base ^ (shift + scale * x); base -1 means e
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy * y * scale * log(base).
#include <cmath>

#include "kernels/pointwise/pointwise_math.h"
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

struct Exponential {
  static constexpr LayerFacts facts = {.kind = LayerKind::math, .elementwise = true};
  double inner, outer;  // y = outer * e ^ (inner * x)
  explicit Exponential(const ExpParameter& p) {
    require(p.base() == -1 || p.base() > 0, "base must be above 0, or -1 for e, but is ", p.base());
    const double log_of_base = p.base() == -1 ? 1 : std::log(static_cast<double>(p.base()));
    inner = log_of_base * p.scale();
    outer = std::exp(log_of_base * p.shift());
  }
  static constexpr bool from_top() { return true; }
  template <typename T>
  CREMA_HD T value(T x) const {
    return T(outer) * exp_of(T(inner) * x);
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T y) const {
    return dy * y * T(inner);
  }
};

using ExpLayer = FunctionLayer<Exponential, ExpParameter>;

}  // namespace
REGISTER_LAYER(Exp, ExpLayer);
}  // namespace crema

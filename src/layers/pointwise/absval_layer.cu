// AbsVal: the absolute value.
//   y = |x|
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy * sign(x), 0 where x is 0.
#include "layers/pointwise/pointwise_layer.h"

namespace crema {
namespace {

struct Absolute {
  static constexpr LayerFacts facts = {
      .kind = LayerKind::math, .elementwise = true, .keeps_zero = true, .least = 0};
  static constexpr bool from_top() { return false; }
  template <typename T>
  CREMA_HD T value(T x) const {
    return x < 0 ? -x : x;
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T x) const {
    return x > 0 ? dy : x < 0 ? -dy : T(0);
  }
};

}  // namespace
REGISTER_LAYER(AbsVal, FunctionLayer<Absolute>);
}  // namespace crema

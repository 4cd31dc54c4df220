// TanH: maps every value into (-1, 1).
//   y = tanh(x)
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy * (1 - y^2).
#include "kernels/pointwise/pointwise_math.h"
#include "layers/pointwise/pointwise_layer.h"

namespace crema {
namespace {

struct Tanh {
  static constexpr LayerFacts facts = {.kind = LayerKind::activation,
                                       .elementwise = true,
                                       .keeps_zero = true,
                                       .least = -1,
                                       .most = 1};
  static constexpr bool from_top() { return true; }
  template <typename T>
  CREMA_HD T value(T x) const {
    return tanh_of(x);
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T y) const {
    return dy * (T(1) - y * y);
  }
};

}  // namespace
REGISTER_LAYER(TanH, FunctionLayer<Tanh>);
}  // namespace crema

// Sigmoid: maps every value into (0, 1).
//   y = 1 / (1 + exp(-x))
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy * y * (1 - y).
#include "kernels/pointwise/pointwise_math.h"
#include "layers/pointwise/pointwise_layer.h"

namespace crema {
namespace {

struct Sigmoid {
  static constexpr LayerFacts facts = {
      .kind = LayerKind::activation, .elementwise = true, .least = 0, .most = 1};
  static constexpr bool from_top() { return true; }
  template <typename T>
  CREMA_HD T value(T x) const {
    return sigmoid_of(x);
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T y) const {
    return dy * y * (T(1) - y);
  }
};

}  // namespace
REGISTER_LAYER(Sigmoid, FunctionLayer<Sigmoid>);
}  // namespace crema

// Swish: the value times its sigmoid; SiLU is the same with beta 1.
//   y = x / (1 + exp(-beta * x))
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy * (s + beta * x * s * (1 - s)) with s = 1 / (1 + exp(-beta * x)).
#include "kernels/pointwise/pointwise_math.h"
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

struct Swish {
  static constexpr LayerFacts facts = {
      .kind = LayerKind::activation, .elementwise = true, .keeps_zero = true};
  float beta;
  explicit Swish(const SwishParameter& p) : beta(p.beta()) {}
  static constexpr bool from_top() { return false; }
  template <typename T>
  CREMA_HD T value(T x) const {
    return x * sigmoid_of(T(beta) * x);
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T x) const {
    const T s = sigmoid_of(T(beta) * x);
    return dy * (s + T(beta) * x * s * (T(1) - s));
  }
};

using SwishLayer = FunctionLayer<Swish, SwishParameter>;

}  // namespace
REGISTER_LAYER(Swish, SwishLayer);
REGISTER_LAYER(SiLU, SwishLayer);
}  // namespace crema

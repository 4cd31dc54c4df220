// ELU: x if positive, else an exponential that saturates at -alpha; both times lambda. SELU (SeLu)
// is the same with the constants that keep mean 0 and variance 1 through a net.
//   y = lambda * x where x > 0, lambda * alpha * (exp(x) - 1) elsewhere
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = lambda * dy where x > 0, (y + lambda * alpha) * dy elsewhere.
#include "kernels/pointwise/pointwise_math.h"
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

struct Elu {
  static constexpr LayerFacts facts = {
      .kind = LayerKind::activation, .elementwise = true, .keeps_zero = true};
  float slope, depth;  // lambda, lambda * alpha
  float top;           // 1: the gradient reads y, 0: x; loops over a bool would not vectorize
  template <typename Message>
  explicit Elu(const Message& p)
      : slope(p.lambda()), depth(p.lambda() * p.alpha()), top(slope > 0 && depth >= 0 ? 1 : 0) {}
  // Then the sign of y is the sign of x, and y + depth = depth * exp(x).
  CREMA_HD bool from_top() const { return top > 0; }
  template <typename T>
  CREMA_HD T value(T x) const {
    const T left = T(depth) * (exp_of(x < 0 ? x : T(0)) - T(1));
    return x > 0 ? T(slope) * x : left;
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T z) const {
    const T left = top > 0 ? z + T(depth) : T(depth) * exp_of(z < 0 ? z : T(0));
    return dy * (z > 0 ? T(slope) : left);
  }
};

using EluLayer = FunctionLayer<Elu, ELUParameter>;
using SeluLayer = FunctionLayer<Elu, SELUParameter>;

}  // namespace
REGISTER_LAYER(ELU, EluLayer);
REGISTER_LAYER(SELU, SeluLayer);
REGISTER_LAYER(SeLu, SeluLayer);
}  // namespace crema

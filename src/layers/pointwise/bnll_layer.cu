// BNLL: binomial normal log likelihood, a smooth ReLU (also called softplus).
//   y = log(1 + exp(x))
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy / (1 + exp(-x)).
#include "kernels/pointwise/pointwise_math.h"
#include "layers/pointwise/pointwise_layer.h"

namespace crema {
namespace {

struct Bnll {
  static constexpr LayerFacts facts = {
      .kind = LayerKind::activation, .elementwise = true, .least = 0};
  static constexpr bool from_top() { return false; }
  template <typename T>
  CREMA_HD T value(T x) const {
    return softplus_of(x);
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T x) const {
    return dy * sigmoid_of(x);
  }
};

}  // namespace
REGISTER_LAYER(BNLL, FunctionLayer<Bnll>);
}  // namespace crema

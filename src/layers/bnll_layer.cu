// BNLL: binomial normal log likelihood, a smooth ReLU (also called softplus).
//   y = log(1 + exp(x))
// Shapes: y as x, any. Parameters: none.
// Gradient: dx = dy / (1 + exp(-x)).
#include "kernels/pointwise.h"
#include "kernels/pointwise_math.h"
#include "layers/pointwise_layer.h"

namespace crema {
namespace {

// Written so that no exponential overflows.
struct Bnll {
  template <typename T>
  CREMA_HD T operator()(T x) const {
    const T right = x > 0 ? x : T(0);
    return right + log1p_of(exp_of(x > 0 ? -x : x));
  }
};

struct BnllGradient {
  template <typename T>
  CREMA_HD T operator()(T dy, T x) const {
    return dy * sigmoid_of(x);
  }
};

class BnllLayer : public PointwiseLayer {
  bool in_place() const override { return false; }
  BackwardReads reads() const override { return {true, false}; }

  void forward(Context& context, const Forward& pass) override {
    pointwise(context, Bnll{}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) override {
    pointwise(context, BnllGradient{}, pass.bottom_diff[0], pass.top_diff[0], pass.bottom[0]);
  }
};

}  // namespace
REGISTER_LAYER(BNLL, BnllLayer);
}  // namespace crema

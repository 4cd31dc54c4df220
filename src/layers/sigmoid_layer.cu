// Sigmoid: squeezes every value into (0, 1).
//   y = 1 / (1 + exp(-x))
// Shapes: y as x, any. Parameters: none.
// Gradient: dx = dy * y * (1 - y).
#include "kernels/pointwise.h"
#include "kernels/pointwise_math.h"
#include "layers/pointwise_layer.h"

namespace crema {
namespace {

struct Sigmoid {
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return sigmoid_of(x);
  }
};

struct SigmoidGradient {
  template <typename T>
  CREMA_HD T operator()(T dy, T y) const {
    return dy * y * (T(1) - y);
  }
};

class SigmoidLayer : public PointwiseLayer {
  BackwardReads reads() const override { return {false, true}; }

  void forward(Context& context, const Forward& pass) override {
    pointwise(context, Sigmoid{}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) override {
    pointwise(context, SigmoidGradient{}, pass.bottom_diff[0], pass.top_diff[0], pass.top[0]);
  }
};

}  // namespace
REGISTER_LAYER(Sigmoid, SigmoidLayer);
}  // namespace crema

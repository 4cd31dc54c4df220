// TanH: squeezes every value into (-1, 1).
//   y = tanh(x)
// Shapes: y as x, any. Parameters: none.
// Gradient: dx = dy * (1 - y^2).
#include "kernels/pointwise.h"
#include "kernels/pointwise_math.h"
#include "layers/pointwise_layer.h"

namespace crema {
namespace {

struct Tanh {
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return tanh_of(x);
  }
};

struct TanhGradient {
  template <typename T>
  CREMA_HD T operator()(T dy, T y) const {
    return dy * (T(1) - y * y);
  }
};

class TanhLayer : public PointwiseLayer {
  BackwardReads reads() const override { return {false, true}; }

  void forward(Context& context, const Forward& pass) override {
    pointwise(context, Tanh{}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) override {
    pointwise(context, TanhGradient{}, pass.bottom_diff[0], pass.top_diff[0], pass.top[0]);
  }
};

}  // namespace
REGISTER_LAYER(TanH, TanhLayer);
}  // namespace crema

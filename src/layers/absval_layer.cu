// AbsVal: the absolute value.
//   y = |x|
// Shapes: y as x, any. Parameters: none.
// Gradient: dx = dy * sign(x), 0 where x is 0.
#include "kernels/pointwise.h"
#include "layers/pointwise_layer.h"

namespace crema {
namespace {

struct Absolute {
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return x < 0 ? -x : x;
  }
};

struct AbsoluteGradient {
  template <typename T>
  CREMA_HD T operator()(T dy, T x) const {
    return x > 0 ? dy : x < 0 ? -dy : T(0);
  }
};

class AbsValLayer : public PointwiseLayer {
  bool in_place() const override { return false; }
  BackwardReads reads() const override { return {true, false}; }

  void forward(Context& context, const Forward& pass) override {
    pointwise(context, Absolute{}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) override {
    pointwise(context, AbsoluteGradient{}, pass.bottom_diff[0], pass.top_diff[0], pass.bottom[0]);
  }
};

}  // namespace
REGISTER_LAYER(AbsVal, AbsValLayer);
}  // namespace crema

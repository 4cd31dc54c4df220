// ReLU6: ReLU capped at 6, as used in nets for low-precision arithmetic.
//   y = min(max(x, 0), 6)
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy where 0 < y < 6, 0 elsewhere.
#include "kernels/pointwise/pointwise.h"
#include "layers/pointwise/pointwise_layer.h"

namespace crema {
namespace {

struct Relu6 {
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
  }
};

struct Relu6Gradient {
  template <typename T>
  CREMA_HD T operator()(T dy, T y) const {
    return y > T(0) && y < T(6) ? dy : T(0);
  }
};

class Relu6Layer : public PointwiseLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::activation,
                                       .elementwise = true,
                                       .keeps_zero = true,
                                       .least = 0,
                                       .most = 6};

 private:
  LayerTraits traits() const override {
    LayerTraits traits = PointwiseLayer::traits();
    traits.reads = {false, true};
    return traits;
  }
  void forward(Context& context, const Forward& pass) const override {
    pointwise(context, Relu6{}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    pointwise(context, Relu6Gradient{}, pass.bottom_diff[0], pass.top_diff[0], pass.top[0]);
  }
};

}  // namespace
REGISTER_LAYER(ReLU6, Relu6Layer);
}  // namespace crema

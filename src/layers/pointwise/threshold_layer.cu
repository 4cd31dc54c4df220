// Threshold: marks the values above a bound.
//   y = 1 where x > threshold, 0 elsewhere
// Shapes: y as x, any.
// Parameters: none.
// Gradient: none; dy is ignored.
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

struct Above {
  float bound;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return x > T(bound) ? T(1) : T(0);
  }
};

class ThresholdLayer : public PointwiseLayer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::math, .elementwise = true, .least = 0, .most = 1};

 private:
  bool differentiable(int) const override { return false; }
  LayerTraits traits() const override {
    LayerTraits traits = PointwiseLayer::traits();
    traits.half_rule = HalfRule::never;
    traits.reads = {false, false};
    return traits;
  }

  void forward(Context& context, const Forward& pass) const override {
    pointwise(context, Above{params<ThresholdParameter>().threshold()}, pass.top[0],
              pass.bottom[0]);
  }
};

}  // namespace
REGISTER_LAYER(Threshold, ThresholdLayer);
}  // namespace crema

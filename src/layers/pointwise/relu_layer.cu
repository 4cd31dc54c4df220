// ReLU: sets negative values to zero, or scales them down (leaky ReLU).
//   y = max(x, 0) + negative_slope * min(x, 0)
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy where x > 0, negative_slope * dy elsewhere.
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

struct LeakyRelu {
  float slope;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return (x < 0 ? T(0) : x) + slope * (x < 0 ? x : T(0));
  }
};

// `z` is x or y: both have the same sign unless the slope is negative.
struct ReluGradient {
  float slope;
  template <typename T>
  CREMA_HD T operator()(T dy, T z) const {
    return z > 0 ? dy : slope * dy;
  }
};

class ReluLayer : public PointwiseLayer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::activation, .elementwise = true, .keeps_zero = true, .least = 0};

 private:
  float slope() const { return params<ReLUParameter>().negative_slope(); }
  LayerTraits traits() const override {
    LayerTraits traits = PointwiseLayer::traits();
    traits.in_place = slope() >= 0;
    traits.reads = {slope() < 0, slope() >= 0};
    return traits;
  }
  Edge top_edge() const override { return {.relu = slope() == 0}; }

  struct State : LayerState {
    bool fused_relu = false;  // by all readers: see Edge
  };

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.make_state<State>().fused_relu = preparation.top_edge.relu;
    if (preparation.top_edge.relu) prepared.reads = {false, false};
    return prepared;
  }

  void forward(Context& context, const Forward& pass) const override {
    pointwise(context, LeakyRelu{slope()}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    if (state_of<State>(pass).fused_relu) {
      if (pass.bottom_diff[0].raw() != pass.top_diff[0].raw())
        copy(context, pass.top_diff[0], pass.bottom_diff[0]);
      return;
    }
    const Tensor& sign = slope() < 0 ? pass.bottom[0] : pass.top[0];
    pointwise(context, ReluGradient{slope()}, pass.bottom_diff[0], pass.top_diff[0], sign);
  }
};

}  // namespace
REGISTER_LAYER(ReLU, ReluLayer);
}  // namespace crema

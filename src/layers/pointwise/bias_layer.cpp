// Bias: adds a learned blob, or the second bottom, broadcast over the other axes.
//   y = x + b
// Shapes: x any; b has axes `axis` to `axis` + num_axes - 1 of x (num_axes -1: all from `axis` on,
// 0: a scalar); a second bottom has as many as its own axes; y as x.
// Parameters: b (0 if no filler is given) unless it is a bottom.
// Gradient: dx = dy; db = sum of dy over the axes that b is broadcast over.
#include "layers/pointwise/broadcast_layer.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

class BiasLayer : public BroadcastLayer {
  const BiasParameter& p() const { return params<BiasParameter>(); }
  LayerTraits traits() const override {
    LayerTraits traits = BroadcastLayer::traits();
    traits.reads = {false, false};
    return traits;
  }

  std::optional<ChannelMap> channel_map() const override {
    if (!maps_channels()) return std::nullopt;
    return ChannelMap{.shift = 0};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    setup_values(bottoms, p().axis(), p().num_axes(), p().filler());
  }

  void forward(Context& context, const Forward& pass) const override {
    scale_forward(context, view(pass.bottom[0]), {}, values(pass.parameters, pass.bottom),
                  pass.bottom[0], pass.top[0]);
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor& dy = pass.top_diff[0];
    ScaleGradients gradients;
    gradients.dx = pass.bottom_diff[0];
    gradients.d_shift = values(pass.parameter_diff, pass.bottom_diff);
    gradients.accumulate_shift = learned_ && pass.accumulate[0];
    scale_backward(context, view(dy), {}, {}, dy, gradients, pass.workspace);
  }
};

}  // namespace
REGISTER_LAYER(Bias, BiasLayer);
}  // namespace crema

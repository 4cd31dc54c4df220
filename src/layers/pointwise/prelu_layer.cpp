// PReLU: ReLU with a learned negative slope, one per channel or one for all.
//   y[n,c,i] = max(x, 0) + a[c] * min(x, 0)   with x = x[n,c,i]
// Shapes: y as x, two axes or more; a is (C), or a scalar with channel_shared.
// Parameters: a, initially 0.25.
// Gradient: dx = dy where x > 0, a[c] * dy elsewhere; da[c] = sum of dy * x over x <= 0.
#include "kernels/pointwise/prelu.h"
#include "layers/layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

class PReluLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::activation, .elementwise = true, .keeps_zero = true, .learned = 1};

 private:
  bool independent_along(int, int axis, const std::vector<Shape>&) const override {
    return shared() || axis != 1;
  }
  bool shared() const { return params<PReLUParameter>().channel_shared(); }
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any, .half_rule = HalfRule::follows, .reads = {true, false}};
  }
  Inference infer(const std::vector<Shape>& bottoms) const override { return {{bottoms[0]}, {}}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(bottoms[0].axes() >= 2,
            "PReLU needs a bottom with channels (2 axes or more), this one is ",
            bottoms[0].brief());
    filler_ = params<PReLUParameter>().filler();
    if (!params<PReLUParameter>().has_filler()) filler_.set_value(0.25f);
    add_parameter(shared() ? Shape() : Shape{bottoms[0][1]}, filler_);
  }

  ChannelView view(const Tensor& x) const {
    if (shared()) return {1, 1, 1, x.count()};
    return ChannelView::of(x.shape(), x.format());
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    prelu_forward(context, view(x), pass.parameters[0], x, pass.top[0]);
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor& x = pass.bottom[0];
    prelu_backward(context, view(x), pass.parameters[0], x, pass.top_diff[0], pass.bottom_diff[0],
                   pass.parameter_diff[0], pass.accumulate[0]);
  }

  FillerParameter filler_;
};

}  // namespace
REGISTER_LAYER(PReLU, PReluLayer);
}  // namespace crema

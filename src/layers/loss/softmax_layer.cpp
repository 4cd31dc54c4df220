// Softmax: turns scores into probabilities along `axis`.
//   y[k] = exp(x[k]) / sum over j of exp(x[j])
// Shapes: x any, y the same.
// Parameters: none.
// Gradient: dx = y * (dy - sum over j of dy[j] * y[j]).
#include "kernels/softmax/softmax.h"
#include "layers/layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

class SoftmaxLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::activation,
                                       .along_channels = true,
                                       .keeps_channels = true,
                                       .least = 0,
                                       .most = 1};

 private:
  bool independent_along(int, int axis, const std::vector<Shape>&) const override {
    return axis != axis_;
  }
  LayerTraits traits() const override {
    return {.in_place = true, .order_rule = order_rule(), .reads = {false, true}};
  }
  OrderRule order_rule() const { return axis_ == 1 ? OrderRule::any : OrderRule::row_major; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    axis_ = bottoms[0].canonical_axis(params<SoftmaxParameter>().axis());
  }
  Inference infer(const std::vector<Shape>& bottoms) const override { return {{bottoms[0]}, {}}; }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    softmax_forward(context, SoftmaxView::of(x.shape(), x.format(), axis_), x, pass.top[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    const Tensor& y = pass.top[0];
    softmax_backward(context, SoftmaxView::of(y.shape(), y.format(), axis_), y, pass.top_diff[0],
                     pass.bottom_diff[0]);
  }

  int axis_ = 1;
};

}  // namespace
REGISTER_LAYER(Softmax, SoftmaxLayer);
}  // namespace crema

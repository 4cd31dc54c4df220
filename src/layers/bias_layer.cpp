// Bias: adds a learned blob, or the second bottom, spread over the other axes.
//   y = x + b
// Shapes: x any; b has axes `axis` to `axis` + num_axes - 1 of x (num_axes -1: all from `axis` on,
// 0: one number), a second bottom its own number of axes; y as x.
// Parameters: b (0 where no filler is given) unless it is a bottom.
// Gradient: dx = dy; db = sum of dy over the axes that b is spread over.
#include "layers/scale_layer.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

class BiasLayer : public Layer {
  const BiasParameter& p() const { return params<BiasParameter>(); }
  Arity bottoms() const override { return {1, 2}; }
  bool in_place() const override { return true; }
  OrderRule order_rule() const override { return axes_.order_rule; }
  BackwardReads reads() const override { return {false, false}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    axes_ = BroadcastAxes::of(bottoms, p().axis(), p().num_axes());
    learned_ = bottoms.size() == 1;
    if (learned_) add_parameter(axes_.shape, p().filler());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override { return {{bottoms[0]}, {}}; }

  Prepared prepare(Context& context, const Preparation& preparation) override {
    const ChannelView view =
        axes_.view(preparation.bottoms[0], {preparation.bottom_orders[0], nullptr});
    return {{}, 2 * view.values() * sizeof(double) + channel_sums_scratch(context, view)};
  }

  void forward(Context& context, const Forward& pass) override {
    ChannelAffine affine;
    affine.shift = learned_ ? pass.parameters[0] : pass.bottom[1];
    const Tensor& x = pass.bottom[0];
    channel_affine(context, axes_.view(x.shape(), x.format()), affine, x, pass.top[0]);
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor &dy = pass.top_diff[0], &dx = pass.bottom_diff[0];
    const Tensor& db = learned_ ? pass.parameter_diff[0] : pass.bottom_diff[1];
    if (db) {
      const ChannelView view = axes_.view(dy.shape(), dy.format());
      ChannelGradient gradient;
      gradient.dy = dy;
      double* sums = pass.workspace.data<double>();
      channel_sums(context, view, gradient, {}, sums, sums + 2 * view.values());
      store_sums(context, sums, db, learned_ && pass.accumulate[0]);
    }
    if (dx && dx.raw() != dy.raw()) copy(context, dy, dx);
  }

  BroadcastAxes axes_;
  bool learned_ = true;
};

}  // namespace
REGISTER_LAYER(Bias, BiasLayer);
}  // namespace crema

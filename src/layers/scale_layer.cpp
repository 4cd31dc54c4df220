// Scale: multiplies by a learned blob, or by the second bottom, spread over the other axes; with
// bias_term also adds a learned one.
//   y = x * s + b
// Shapes: x any; s has axes `axis` to `axis` + num_axes - 1 of x (num_axes -1: all from `axis` on,
// 0: one number), a second bottom its own number of axes; y as x.
// Parameters: s (1 where no filler is given) unless it is a bottom, b like s.
// Gradient: dx = dy * s; ds = sum of dy * x and db = sum of dy over the axes that s is spread over.
#include "layers/scale_layer.h"

#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

class ScaleLayer : public Layer {
  const ScaleParameter& p() const { return params<ScaleParameter>(); }
  Arity bottoms() const override { return {1, 2}; }
  bool in_place() const override { return true; }
  OrderRule order_rule() const override { return axes_.order_rule; }
  BackwardReads reads() const override {
    return {true, false};
  }  // x for ds; a second bottom for dx

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    axes_ = BroadcastAxes::of(bottoms, p().axis(), p().num_axes());
    learned_ = bottoms.size() == 1;
    static const FillerParameter one = [] {
      FillerParameter filler;
      filler.set_value(1);
      return filler;
    }();
    if (learned_) add_parameter(axes_.shape, p().has_filler() ? p().filler() : one);
    if (p().bias_term()) add_parameter(axes_.shape, p().bias_filler());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override { return {{bottoms[0]}, {}}; }

  // Two sums for each value, and what the kernel needs besides.
  Prepared prepare(Context& context, const Preparation& preparation) override {
    const ChannelView view =
        axes_.view(preparation.bottoms[0], {preparation.bottom_orders[0], nullptr});
    return {{}, 2 * view.values() * sizeof(double) + channel_sums_scratch(context, view)};
  }

  void forward(Context& context, const Forward& pass) override {
    ChannelAffine affine;
    affine.factor = learned_ ? pass.parameters[0] : pass.bottom[1];
    if (p().bias_term()) affine.shift = pass.parameters.back();
    const Tensor& x = pass.bottom[0];
    channel_affine(context, axes_.view(x.shape(), x.format()), affine, x, pass.top[0]);
  }

  void backward(Context& context, const Backward& pass) override {
    const ChannelView view = axes_.view(pass.top_diff[0].shape(), pass.top_diff[0].format());
    const Tensor& ds = learned_ ? pass.parameter_diff[0] : pass.bottom_diff[1];
    const Tensor db = p().bias_term() ? pass.parameter_diff.back() : Tensor();
    ChannelGradient gradient;
    gradient.dy = pass.top_diff[0];
    if (ds || db) {
      if (ds) gradient.x = pass.bottom[0];
      double* sums = pass.workspace.data<double>();
      channel_sums(context, view, gradient, {}, sums, sums + 2 * view.values());
      if (ds) store_sums(context, sums + view.values(), ds, learned_ && pass.accumulate[0]);
      if (db) store_sums(context, sums, db, pass.accumulate.back());
    }
    if (!pass.bottom_diff[0]) return;
    gradient.x = {};
    gradient.factor = learned_ ? pass.parameters[0] : pass.bottom[1];
    channel_gradient(context, view, gradient, {}, {}, pass.bottom_diff[0]);
  }

  BroadcastAxes axes_;
  bool learned_ = true;
};

}  // namespace
REGISTER_LAYER(Scale, ScaleLayer);
}  // namespace crema

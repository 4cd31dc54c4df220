// Scale: multiplies by a learned blob, or by the second bottom, spread over the other axes; with
// bias_term also adds a learned one.
//   y = x * s + b
// Shapes: x any; s has axes `axis` to `axis` + num_axes - 1 of x (num_axes -1: all from `axis` on,
// 0: one number), a second bottom its own number of axes; y as x.
// Parameters: s (1 where no filler is given) unless it is a bottom, b like s.
// Gradient: dx = dy * s; ds = sum of dy * x and db = sum of dy over the axes that s is spread over.
#include "layers/broadcast_layer.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

class ScaleLayer : public BroadcastLayer {
  const ScaleParameter& p() const { return params<ScaleParameter>(); }
  // x for ds; a second bottom for dx.
  BackwardReads reads() const override { return {true, false}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    static const FillerParameter one = [] {
      FillerParameter filler;
      filler.set_value(1);
      return filler;
    }();
    setup_values(bottoms, p().axis(), p().num_axes(), p().has_filler() ? p().filler() : one);
    if (p().bias_term()) add_parameter(axes_.shape, p().bias_filler());
  }

  void forward(Context& context, const Forward& pass) override {
    scale_forward(context, view(pass.bottom[0]), values(pass.parameters, pass.bottom),
                  p().bias_term() ? pass.parameters.back() : Tensor(), pass.bottom[0], pass.top[0]);
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor& dy = pass.top_diff[0];
    ScaleGradients gradients;
    gradients.dx = pass.bottom_diff[0];
    gradients.d_factor = values(pass.parameter_diff, pass.bottom_diff);
    gradients.accumulate_factor = learned_ && pass.accumulate[0];
    if (p().bias_term()) {
      gradients.d_shift = pass.parameter_diff.back();
      gradients.accumulate_shift = pass.accumulate.back();
    }
    scale_backward(context, view(dy), values(pass.parameters, pass.bottom), pass.bottom[0], dy,
                   gradients, pass.workspace);
  }
};

}  // namespace
REGISTER_LAYER(Scale, ScaleLayer);
}  // namespace crema

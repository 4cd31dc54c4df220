// Scale: multiplies by a learned blob, or by the second bottom, broadcast over the other axes; with
// bias_term also adds a learned one.
//   y = x * s + b
// Shapes: x any; s has axes `axis` to `axis` + num_axes - 1 of x (num_axes -1: all from `axis` on,
// 0: a scalar); a second bottom has as many as its own axes; y as x.
// Parameters: s (1 if no filler is given) unless it is a bottom, b like s. With min_value and
// max_value (a fork) forward first clips s to these bounds, in place.
// Gradient: dx = dy * s; ds = sum of dy * x and db = sum of dy over the axes that s is broadcast
// over.
#include <limits>

#include "device/parallel.h"
#include "layers/pointwise/broadcast_layer.h"
#include "proto/params/pointwise.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
struct KeepFactors {
  T minimum, maximum;
  T* factors;
  CREMA_HD void operator()(int64_t i) const {
    if (factors[i] < minimum) factors[i] = minimum;
    if (factors[i] > maximum) factors[i] = maximum;
  }
};

class ScaleLayer : public BroadcastLayer {
  const ScaleParameter& p() const { return params<ScaleParameter>(); }
  // Backward reads x for ds, and a second bottom for dx.
  LayerTraits traits() const override {
    LayerTraits traits = BroadcastLayer::traits();
    traits.reads = {true, false};
    traits.changes_parameters = learned_ && clips();
    return traits;
  }

  // Factors that forward clips are no constants.
  std::optional<ChannelMap> channel_map() const override {
    if (!maps_channels() || clips()) return std::nullopt;
    return ChannelMap{.scale = 0, .shift = p().bias_term() ? 1 : -1};
  }
  bool clips() const { return p().has_min_value() || p().has_max_value(); }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    static const FillerParameter one = [] {
      FillerParameter filler;
      filler.set_value(1);
      return filler;
    }();
    setup_values(bottoms, p().axis(), p().num_axes(), p().has_filler() ? p().filler() : one);
    if (p().bias_term()) add_parameter(axes_.shape, p().bias_filler());
  }

  void keep_factors(Context& context, const Tensor& factors) const {
    constexpr float kFar = std::numeric_limits<float>::max();
    const float minimum = p().has_min_value() ? p().min_value() : -kFar;
    const float maximum = p().has_max_value() ? p().max_value() : kFar;
    on(factors, [&]<typename T>() {
      parallel_for(
          context, factors.count(),
          KeepFactors<T>{static_cast<T>(minimum), static_cast<T>(maximum), factors.data<T>()});
    });
  }

  void forward(Context& context, const Forward& pass) const override {
    if (learned_ && clips()) keep_factors(context, pass.parameters[0]);
    scale_forward(context, view(pass.bottom[0]), values(pass.parameters, pass.bottom),
                  p().bias_term() ? pass.parameters.back() : Tensor(), pass.bottom[0], pass.top[0]);
  }

  void backward(Context& context, const Backward& pass) const override {
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

// BN: BatchNorm with Scale in one layer, as in forks.
//   y = (x - mean) / sqrt(variance + eps) * slope + bias
// In training over the batch and all positions; the stored statistics then become
//   stored = momentum * stored + (1 - momentum) * (mean or variance of the batch)
// In testing, and with frozen: true, it uses the stored ones; frozen also keeps slope and bias
// unchanged. Files that name scale_filler, shift_filler, bn_mode or variance_eps come from a
// segmentation fork (SegNet), which stores no statistics: bn_mode LEARN uses the batch's also in
// testing, and INFERENCE is y = x * slope + bias. moving_average: false is like LEARN. sync_bn:
// true: with several ranks the batch is that of all (see BatchNorm).
// Shapes: x (N, C, ...), y the same. In SegNet's form two more tops may follow, mean and variance
// of the batch, each (1, C, 1, 1): SegNet's compute_bn_statistics.py averages them for an INFERENCE
// net.
// Parameters: slope (1 unless a filler is given) and bias; mean and variance, which are measured,
// unless none are stored. Each is (1, C), or (1, C, 1, 1) in SegNet.
// Gradient: as of BatchNorm followed by Scale; none from mean and variance. The planner fuses it
// into "BN+ReLU" and "BN+Sum+ReLU".
#include "kernels/pointwise/pointwise.h"
#include "layers/norm/batch_norm_base.h"
#include "proto/layer.pb.h"
#include "proto/params/normalization.pb.h"

namespace crema {
namespace {

struct BnMean {
  template <typename T>
  CREMA_HD T operator()(T mean) const {
    return mean;
  }
};

// Computed from 1 / sqrt(variance + eps).
struct BnVariance {
  float eps;
  template <typename T>
  CREMA_HD T operator()(T inverse) const {
    return 1 / (inverse * inverse) - T(eps);
  }
};

class BnLayer : public BatchNormBase {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::norm,
                                       .along_channels = true,
                                       .keeps_channels = true,
                                       .centres = true,
                                       .learned = 2};

 private:
  const BNParameter& p() const { return params<BNParameter>(); }
  bool of_segnet() const {
    return p().has_bn_mode() || p().has_scale_filler() || p().has_shift_filler() ||
           p().has_variance_eps();
  }
  bool infers() const { return p().bn_mode() == BNParameter::INFERENCE; }
  bool shows_statistics() const { return message().top_size() > 1; }
  // Forks that store statistics and name the slope's filler scale_filler also have a momentum.
  bool stores() const {
    const bool asks = p().has_momentum() || p().has_moving_average() || p().frozen();
    return p().moving_average() && (asks || !of_segnet());
  }

  Arity tops() const override { return {1, of_segnet() && !stores() && !infers() ? 3 : 1}; }
  LayerTraits traits() const override {
    LayerTraits traits = BatchNormBase::traits();
    if (shows_statistics()) {
      traits.order_rule = OrderRule::row_major;
      traits.half_rule = HalfRule::never;
      traits.recomputes = false;
    }
    return traits;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    Inference inference = BatchNormBase::infer(bottoms);
    inference.tops.resize(std::max(1, message().top_size()), {1, channels_of(bottoms[0]), 1, 1});
    return inference;
  }

  void forward(Context& context, const Forward& pass) const override {
    BatchNormBase::forward(context, pass);
    if (pass.top.size() > 1) pointwise(context, BnMean{}, pass.top[1], pass.saved[0]);
    if (pass.top.size() > 2)
      pointwise(context, BnVariance{settings_.eps}, pass.top[2], pass.saved[1]);
  }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    const Shape& x = bottoms[0];
    require(x.axes() >= 2, "BN needs a bottom with channels (2 axes or more), this one is ",
            x.brief());
    settings_.batch_statistics = !infers() && !(stores() && (p().frozen() || !training()));
    settings_.eps = !of_segnet() || p().has_eps() ? p().eps() : p().variance_eps();
    settings_.fraction = p().momentum();
    settings_.share = 1 - p().momentum();
    settings_.unbiased = false;
    if (p().sync_bn()) synchronize(context);
    const Shape shape = of_segnet() ? Shape{1, x[1], 1, 1} : Shape{1, x[1]};
    position_.scale = 0, position_.shift = 1;
    add_parameter(shape,
                  p().has_slope_filler()   ? p().slope_filler()
                  : p().has_scale_filler() ? p().scale_filler()
                                           : ones(),
                  !p().frozen());
    add_parameter(shape, p().has_bias_filler() ? p().bias_filler() : p().shift_filler(),
                  !p().frozen());
    if (!stores() || infers()) return;
    position_.mean = 2, position_.variance = 3;
    add_parameter(shape, FillerParameter::default_instance(), false);
    // Without trained weights a frozen layer is the identity.
    add_parameter(shape, p().frozen() ? ones() : FillerParameter::default_instance(), false);
  }
};

REGISTER_FUSED(BnLayer, "BN+ReLU", "BN+Sum+ReLU");

}  // namespace
REGISTER_LAYER(BN, BnLayer);
}  // namespace crema

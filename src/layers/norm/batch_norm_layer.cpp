// BatchNorm: gives each channel mean 0 and variance 1.
//   y = (x - mean) / sqrt(variance + eps)
// In training over the batch and all positions; with f = moving_average_fraction and m values per
// channel, the stored statistics then become
//   stored mean     = mean + f * stored mean
//   stored variance = m / (m - 1) * variance + f * stored variance
//   number          = 1 + f * number
// With stats_batch_size (a fork) each group of that many consecutive images has its own mean and
// variance, and updates the stored ones. In testing, or with use_global_stats: true, it uses the
// stored ones divided by `number`. With several ranks, each has the statistics of its own part of
// the batch; with sync_bn: true all have those of the whole batch, even if the parts differ in
// size. The ranks' means and sums of squared differences are merged, so that a large mean loses no
// precision. It costs one exchange of a few values per channel forward and one backward. All ranks'
// stored statistics are then the same. It cannot be combined with stats_batch_size. Scale (with
// bias_term: true) usually follows. scale_bias: true learns the same two blobs in this layer. So
// does a scale_filler or bias_filler, as in NVCaffe; Intel's fork calls them filler, shift_filler,
// use_weight_bias and bias_term.
// Shapes: x (N, C, ...), y the same.
// Parameters: sums of means (C) and variances (C), number (1), which are measured, not learned;
// with scale_bias also scale (C) and bias (C). Old param blocks that set an lr_mult for the first
// three have no effect.
// Gradient: dx = (dy - mean(dy) - y * mean(dy * y)) / sqrt(variance + eps); with stored statistics
// dx = dy / sqrt(variance + eps).
//
// The planner's types fuse it with the layers that follow: "BatchNorm+Scale", "BatchNorm+ReLU",
// "BatchNorm+Sum+ReLU", "BatchNorm+Scale+ReLU" and "BatchNorm+Scale+Sum+ReLU". With a sum there is
// a second bottom z:
//   y = relu((x - mean) / sqrt(variance + eps) * scale + bias + z)
// Their message has batch_norm_param, scale_param and relu_param; their parameters are BatchNorm's
// followed by Scale's.
#include "layers/norm/batch_norm_base.h"
#include "layers/norm/batch_norm_fields.h"
#include "proto/layer.pb.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

class BatchNormLayer : public BatchNormBase {
  const BatchNormParameter& p() const { return params<BatchNormParameter>(); }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    const Shape& x = bottoms[0];
    require(x.axes() >= 1, "BatchNorm needs at least one axis, the batch");
    const bool stored = uses_stored_statistics(p(), training());
    settings_.batch_statistics = !stored;
    settings_.eps = p().eps();
    settings_.fraction = p().moving_average_fraction();
    if (!stored) images_together_ = p().stats_batch_size();
    if (p().sync_bn()) synchronize(context);
    position_.mean = 0, position_.variance = 1, position_.factor = 2;
    const int64_t channels = channels_of(x);
    for (int i = 0; i < 3; ++i) {
      add_parameter(i < 2 ? Shape{channels} : Shape{1}, FillerParameter::default_instance(), false);
      if (i >= message().param_size()) continue;
      require(message().param(i).lr_mult() == 0, "param ", i,
              " says lr_mult: ", message().param(i).lr_mult(),
              ", but BatchNorm's statistics are measured, not learned: write param { lr_mult: 0 } "
              "three times, or none at all");
    }
    if (fuses("Scale")) {
      const ScaleParameter& scale = params<ScaleParameter>();
      require(!learns_scale(p()),
              "a BatchNorm that has factors of its own cannot be joined with a Scale");
      require(x.canonical_axis(scale.axis()) == 1 && scale.num_axes() == 1,
              "only a Scale of one factor a channel can be joined");
      add_scale(channels, scale.has_filler() ? &scale.filler() : nullptr, scale.bias_term(),
                scale.bias_filler());
    } else if (learns_scale(p())) {
      const FillerParameter* filler = p().has_scale_filler() ? &p().scale_filler()
                                      : p().has_filler()     ? &p().filler()
                                                             : nullptr;
      add_scale(channels, filler, learns_bias(p()),
                p().has_bias_filler() ? p().bias_filler() : p().shift_filler());
    }
  }

  void add_scale(int64_t channels, const FillerParameter* filler, bool bias,
                 const FillerParameter& bias_filler) {
    position_.scale = 3;
    add_parameter({channels}, filler ? *filler : ones());
    if (!bias) return;
    position_.shift = 4;
    add_parameter({channels}, bias_filler);
  }
};

REGISTER_LAYER(BatchNorm, BatchNormLayer);

REGISTER_FUSED(BatchNormLayer, "BatchNorm+Scale", "BatchNorm+ReLU", "BatchNorm+Sum+ReLU",
               "BatchNorm+Scale+ReLU", "BatchNorm+Scale+Sum+ReLU");

}  // namespace
}  // namespace crema

// BatchNorm: gives each channel mean 0 and variance 1.
//   y = (x - mean) / sqrt(variance + eps)
// In training over the batch and all places; with f = moving_average_fraction and m values a
// channel, the stored statistics then become
//   stored mean     = mean + f * stored mean
//   stored variance = m / (m - 1) * variance + f * stored variance
//   number          = 1 + f * number
// In testing, or with use_global_stats: true, the stored ones over `number` are used. Scale (with
// bias_term: true) usually follows; scale_bias: true learns the same two blobs in this layer.
// Shapes: x (N, C, ...), y the same.
// Parameters: sums of means (C) and variances (C), number (1), which are measured and not learned;
// with scale_bias also factor (C) and summand (C).
// Gradient: dx = (dy - mean(dy) - y * mean(dy * y)) / sqrt(variance + eps); with stored statistics
// dx = dy / sqrt(variance + eps).
//
// The planner's types join it with the layers that follow: "BatchNorm+Scale", "BatchNorm+ReLU",
// "BatchNorm+Scale+ReLU" and "BatchNorm+Scale+Sum+ReLU". The last has a second bottom z:
//   y = relu((x - mean) / sqrt(variance + eps) * scale + bias + z)
// Their message has batch_norm_param, scale_param and relu_param, their parameters are BatchNorm's
// followed by Scale's.
#include "kernels/batch_norm.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"
#include "proto/params/normalization.pb.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

const FillerParameter& ones() {
  static const FillerParameter filler = [] {
    FillerParameter one;
    one.set_value(1);
    return one;
  }();
  return filler;
}

class BatchNormLayer : public Layer {
  const BatchNormParameter& p() const { return params<BatchNormParameter>(); }
  bool joins(const char* what) const { return type().find(what) != std::string::npos; }
  bool plain() const { return !scale_ && !bias_ && !joins("ReLU"); }

  Arity bottoms() const override { return joins("+Sum") ? Arity{2, 2} : Arity{1, 1}; }
  bool in_place() const override { return true; }
  OrderRule order_rule() const override { return OrderRule::any; }
  HalfRule half_rule() const override { return HalfRule::follows; }
  BackwardReads reads() const override {
    // Alone, y is the normalized x that the gradient needs; joined, x is needed, and y for the sign
    // before the ReLU only when it cannot be computed from x.
    if (plain()) return {false, !stored_};
    return {true, joins("+Sum"), true};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    const Shape& x = bottoms[0];
    require(x.axes() >= 1, "BatchNorm needs at least one axis, the batch");
    stored_ = p().has_use_global_stats() ? p().use_global_stats() : !training();
    const int64_t channels = x.axes() == 1 ? 1 : x[1];
    for (int i = 0; i < 3; ++i) {
      add_parameter(i < 2 ? Shape{channels} : Shape{1}, FillerParameter::default_instance(), false);
      if (i >= message().param_size()) continue;
      require(message().param(i).lr_mult() == 0, "param ", i,
              " says lr_mult: ", message().param(i).lr_mult(),
              ", but BatchNorm's statistics are measured, not learned: write param { lr_mult: 0 } "
              "three times, or none at all");
    }
    if (joins("+Scale")) {
      const ScaleParameter& scale = params<ScaleParameter>();
      require(!p().scale_bias() && !p().bias_term(),
              "a BatchNorm that has factors of its own cannot be joined with a Scale");
      require(x.canonical_axis(scale.axis()) == 1 && scale.num_axes() == 1,
              "only a Scale of one factor a channel can be joined");
      add_scale(channels, scale.has_filler() ? &scale.filler() : nullptr, scale.bias_term(),
                scale.bias_filler());
    } else if (p().scale_bias() || p().bias_term()) {
      const FillerParameter* filler = p().has_scale_filler() ? &p().scale_filler()
                                      : p().has_filler()     ? &p().filler()
                                                             : nullptr;
      add_scale(channels, filler, true, p().bias_filler());
    }
  }

  void add_scale(int64_t channels, const FillerParameter* filler, bool bias,
                 const FillerParameter& bias_filler) {
    scale_ = true;
    add_parameter({channels}, filler ? *filler : ones());
    bias_ = bias;
    if (bias) add_parameter({channels}, bias_filler);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    for (const Shape& bottom : bottoms) {
      require(bottom == bottoms[0], "what is added must have the shape ", bottoms[0].brief(),
              ", but has ", bottom.brief());
    }
    const Shape channels = parameters()[0].shape;
    return {{bottoms[0]},
            {{channels, {}}, {channels, {}}}};  // saved: mean and 1 / sqrt(variance + eps)
  }

  Prepared prepare(Context& context, const Preparation& preparation) override {
    const Shape& x = preparation.bottoms[0];
    const BatchNormCase c = make_case(x, {preparation.bottom_orders[0], nullptr});
    Prepared prepared;
    prepared.workspace = batch_norm_workspace(context, c.view);
    if (!c.relu || !batch_norm_takes_packs(context, c, preparation.storage)) return prepared;
    prepared.top_diff_parts = 2;
    if (c.added && preparation.backward) {
      const auto bytes = static_cast<int64_t>(size_of(preparation.storage));
      prepared.saved = {{Shape{x.count() * bytes / 16}, DType::u8}};
      prepared.reads = {true, false, true};
    }
    return prepared;
  }

  BatchNormCase make_case(const Shape& x, const Format& format) const {
    BatchNormCase c;
    c.view = ChannelView::of(x, format);
    c.batch_statistics = !stored_;
    c.eps = p().eps();
    c.fraction = p().moving_average_fraction();
    c.added = joins("+Sum");
    c.relu = joins("ReLU");
    c.slope = params<ReLUParameter>().negative_slope();
    return c;
  }
  BatchNormParameters blobs(const std::vector<Tensor>& parameters) const {
    return {parameters[0], parameters[1], parameters[2], scale_ ? parameters[3] : Tensor(),
            bias_ ? parameters[4] : Tensor()};
  }

  static BatchNormSaved saved(const std::vector<Tensor>& tensors) {
    return {tensors[0], tensors[1], tensors.size() > 2 ? tensors[2] : Tensor()};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor &x = pass.bottom[0], added = pass.bottom.size() > 1 ? pass.bottom[1] : Tensor();
    batch_norm_forward(context, make_case(x.shape(), x.format()), blobs(pass.parameters), x, added,
                       pass.top[0], saved(pass.saved), pass.workspace);
  }

  bool recomputes() const override { return true; }
  void recompute(Context& context, const Forward& pass) override {
    const Tensor &x = pass.bottom[0], added = pass.bottom.size() > 1 ? pass.bottom[1] : Tensor();
    batch_norm_recompute(context, make_case(x.shape(), x.format()), blobs(pass.parameters), x,
                         added, pass.top[0], saved(pass.saved), pass.workspace);
  }

  void backward(Context& context, const Backward& pass) override {
    BatchNormGradients gradients;
    gradients.dx = pass.bottom_diff[0];
    if (pass.bottom_diff.size() > 1) gradients.d_added = pass.bottom_diff[1];
    if (scale_) {
      gradients.d_scale = pass.parameter_diff[3];
      gradients.accumulate_scale = pass.accumulate[3];
    }
    if (bias_) {
      gradients.d_shift = pass.parameter_diff[4];
      gradients.accumulate_shift = pass.accumulate[4];
    }
    const Tensor &dy = pass.top_diff[0],
                 more_dy = pass.more_top_diff.empty() ? Tensor() : pass.more_top_diff[0];
    batch_norm_backward(context, make_case(dy.shape(), dy.format()), blobs(pass.parameters),
                        pass.bottom[0], pass.top[0], dy, more_dy, saved(pass.saved), gradients,
                        pass.workspace);
  }

  bool stored_ = false, scale_ = false, bias_ = false;
};

REGISTER_LAYER(BatchNorm, BatchNormLayer);

// Names that are no identifiers.
[[maybe_unused]] const bool joined_types = [] {
  for (const char* type :
       {"BatchNorm+Scale", "BatchNorm+ReLU", "BatchNorm+Scale+ReLU", "BatchNorm+Scale+Sum+ReLU"}) {
    LayerRegistry::add(
        type,
        {[]() -> std::unique_ptr<Layer> { return std::make_unique<BatchNormLayer>(); }, __FILE__});
  }
  return true;
}();

}  // namespace
}  // namespace crema

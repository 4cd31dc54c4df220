// Convolution+Pooling, Convolution+ReLU+Pooling, Convolution+Pooling+Dropout and
// Convolution+ReLU+Pooling+Dropout: what the planner makes of neighbours where one kernel
// (kernels/conv/conv_pooled.h) does their work. Elsewhere, as in tests, the members run one after
// the other.
//   y = dropout(max of each 2 x 2 of relu(convolution(x)))
// Shapes: x (N, C, H, W), y (N, num_output, H'/2, W'/2), halves rounded as Pooling does.
// Parameters: the convolution's.
// Gradient: dy, times the dropout's factor, goes to the place that was the largest, if it was
// positive and has not been dropped, and from there through the convolution.
#include "kernels/conv/conv_pooled.h"
#include "layers/fused/fused_member.h"
#include "layers/pointwise/dropout_params.h"
#include "layers/vision/convolution_base.h"
#include "layers/vision/pooling_window.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class PooledConvolutionLayer : public Layer {
  OrderRule order_rule() const override { return convolution_->order_rule(); }
  HalfRule half_rule() const override { return convolution_->half_rule(); }
  int64_t padded_channels(DType storage) const override {
    return convolution_->padded_channels(storage);
  }
  BackwardReads reads() const override { return {true, false}; }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    relu_ = type().find("+ReLU") != std::string::npos;
    convolution_ = joined_member(*this, relu_ ? "Convolution+ReLU" : "Convolution");
    convolution_->setup(context, bottoms);
    for (const ParameterSpec& spec : convolution_->parameters())
      add_parameter(spec.shape, *spec.filler, spec.learned);
    pooling_ = joined_member(*this, "Pooling");
    pooling_->setup(context, {between(bottoms)});
    require(!relu_ || convolution_->ends_in_relu(),
            "a ReLU in front of a pooling has no slope here");
    if (ends_with(type(), "+Dropout"))
      dropout_ = DropoutParams(params<DropoutParameter>(), training());
  }

  // The convolution's top.
  Shape between(const std::vector<Shape>& bottoms) const {
    return convolution_->infer(bottoms).tops[0];
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    return pooling_->infer({between(bottoms)});
  }

  bool worth_joining(const Context& context, const std::vector<Shape>& bottoms,
                     Precision precision) const override {
    if (bottoms[0].axes() != 4 || message().top_size() != 1) return false;
    const std::optional<PoolWindow> w = pool_window(*pooling_, between(bottoms));
    if (!w || w->method != PoolMethod::max) return false;
    for (int axis = 1; axis < 3; ++axis)
      if (w->kernel[axis] != 2 || w->stride[axis] != 2 || w->pad[axis] != 0) return false;
    Preparation preparation;
    preparation.bottoms = bottoms;
    preparation.tops = infer(bottoms).tops;
    preparation.bottom_orders = {Order::channels_last};
    preparation.bottom_channels = {0};
    preparation.bottom_needs_diff = {false};
    preparation.parameter_formats.resize(parameters().size());
    preparation.storage = storage_of(precision, DType::f32);
    return preparation.tops[0].count(2) > 1 && worth_pooling(context, case_of(preparation));
  }

  ConvCase case_of(const Preparation& preparation) const {
    ConvCase c = static_cast<const ConvolutionBase&>(*convolution_).case_of(inner(preparation));
    c.pooled = {preparation.tops[0][2], preparation.tops[0][3]};
    return c;
  }

  // For the convolution.
  Preparation inner(const Preparation& preparation) const {
    Preparation inner = preparation;
    inner.tops = {between(preparation.bottoms)};
    inner.relu_taken = relu_;
    return inner;
  }

  Prepared prepare(Context& context, const Preparation& preparation) override {
    between_ = between(preparation.bottoms);
    joined_ = nullptr;
    if (context.implementation.empty() &&
        worth_joining(context, preparation.bottoms, preparation.precision))
      join(context, preparation);
    if (joined_) {
      Prepared prepared;
      prepared.parameter_formats.resize(parameters().size());
      prepared.parameter_formats[0] = joined_->weights_format();
      prepared.half_parameters.assign(parameters().size(), true);
      prepared.adds_gradients = joined_->adds_weights();
      return prepared;
    }
    Prepared prepared = convolution_->prepare(context, inner(preparation));
    Preparation behind = preparation;
    behind.bottoms = {between_};
    behind.takes_relu = relu_;
    pooling_->prepare(context, behind);
    prepared.saved.push_back({between_, preparation.storage});
    prepared.reads = std::nullopt;
    return prepared;
  }

  void join(Context& context, const Preparation& preparation) {
    const ConvCase c = case_of(preparation);
    std::string reason;
    // The kernel has the bias's gradient with that of the weights.
    const std::vector<bool>& learned = preparation.parameter_needs_diff;
    if (learned.size() > 1 && learned[1] && !learned[0]) return;
    joined_ = make_pooled_conv(context, c, reason);
    if (joined_ && c.weights_format &&
        !same_layout(*c.weights_format, joined_->weights_format(), c.w))
      joined_ = nullptr;
  }

  template <typename Pass>
  DropoutMask mask(const Context& context, const Pass& pass) const {
    return dropout_.mask(context.random(id(), pass.pass, pass.live_pass));
  }
  Tensor between(const Tensor& saved, const Tensor& top) const {
    return saved.reshaped(between_, top.format());
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor& y = pass.top[0];
    if (joined_) {
      return joined_->forward(context, pass.bottom[0], pass.parameters[0],
                              pass.parameters.size() > 1 ? pass.parameters[1] : Tensor(), y,
                              pass.saved[0], mask(context, pass));
    }
    Forward part = pass;
    part.top = {between(pass.saved.back(), y)};
    part.saved.pop_back();  // the rest is the pooling's
    convolution_->forward(context, part);
    part.bottom = part.top;
    part.top = {y};
    pooling_->forward(context, part);
    if (dropout_.changes()) dropout(context, mask(context, pass), y, y);
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor& dy = pass.top_diff[0];
    if (joined_) return backward_joined(context, pass);
    if (dropout_.changes()) dropout(context, mask(context, pass), dy, dy);
    Backward part = pass;
    part.bottom_diff = {between(pass.saved.back(), dy)};
    part.saved.pop_back();
    part.bottom = {Tensor()};
    pooling_->backward(context, part);
    part.top_diff = part.bottom_diff;
    part.top = {Tensor()};
    part.bottom = pass.bottom;
    part.bottom_diff = pass.bottom_diff;
    convolution_->backward(context, part);
  }

  void backward_joined(Context& context, const Backward& pass) const {
    const Tensor &dy = pass.top_diff[0], &kept = pass.saved[0], &dw = pass.parameter_diff[0];
    const Tensor db = pass.parameter_diff.size() > 1 ? pass.parameter_diff[1] : Tensor();
    const auto bottom = [&] {
      if (const Tensor& dx = pass.bottom_diff[0])
        joined_->backward_data(context, dy, kept, dropout_.factor, pass.parameters[0], dx);
    };
    if (!dw) return bottom();
    const auto weights = [&] {
      joined_->backward_weights(context, pass.bottom[0], dy, kept, dropout_.factor, dw, db,
                                pass.accumulate[0], db && pass.accumulate[1]);
    };
    context.aside(pass.aside_lane, weights, bottom);
  }

  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>&) const override {
    return convolution_->multiply_adds(bottoms, {between(bottoms)});
  }

  bool relu_ = false;
  DropoutParams dropout_;
  std::unique_ptr<Layer> convolution_, pooling_;
  Shape between_;  // of the convolution's top
  std::unique_ptr<PooledConv> joined_;
};

std::unique_ptr<Layer> make() { return std::make_unique<PooledConvolutionLayer>(); }
[[maybe_unused]] const bool joined_types = [] {
  for (const char* type : {"Convolution+Pooling", "Convolution+ReLU+Pooling",
                           "Convolution+Pooling+Dropout", "Convolution+ReLU+Pooling+Dropout"})
    LayerRegistry::add(type, {make, __FILE__});
  return true;
}();

}  // namespace
}  // namespace crema

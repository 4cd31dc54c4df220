// Convolution+Pooling, Convolution+ReLU+Pooling, Convolution+Pooling+Dropout and
// Convolution+ReLU+Pooling+Dropout: fused layers. The planner makes them where one kernel
// (kernels/conv/conv_pooled.h) implements them. Elsewhere, as in tests, the members run one after
// the other.
//   y = dropout(max of each 2 x 2 of relu(convolution(x)))
// Shapes: x (N, C, H, W), y (N, num_output, H'/2, W'/2), halves rounded as Pooling does.
// Parameters: the convolution's.
// Gradient: dy, times the dropout's factor, goes to the maximum's position if the maximum was
// positive and not dropped, and from there through the convolution.
#include "kernels/conv/conv_pooled.h"
#include "kernels/core/kernel_registry.h"
#include "layers/fused/fused_layer.h"
#include "layers/pointwise/dropout_params.h"
#include "layers/vision/convolution_base.h"
#include "layers/vision/pooling_window.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class PooledConvolutionLayer : public FusedLayer {
  LayerTraits traits() const override {
    return {.order_rule = member(0).traits().order_rule,
            .half_rule = member(0).traits().half_rule,
            .reads = {true, false}};
  }
  int64_t padded_channels(DType storage) const override {
    return member(0).padded_channels(storage);
  }

  void setup(Context& context, const std::vector<Shape>& bottoms) override {
    std::vector<MemberSpec> members = {
        {fuses("ReLU") ? "Convolution+ReLU" : "Convolution", {{.bottom = 0}}},
        {"Pooling", {{.member = 0}}}};
    if (fuses("Dropout")) {
      members.push_back({"Dropout", {{.member = 1}}});
      dropout_ = DropoutParams(params<DropoutParameter>(), training());
    }
    set_up_members(context, bottoms, members);
    require(!fuses("ReLU") || member(0).top_edge().relu,
            "a ReLU in front of a pooling has no slope here");
  }

  bool is_profitable(const Context& context, const std::vector<Shape>& bottoms,
                     Precision precision) const override {
    if (bottoms[0].axes() != 4 || message().top_size() != 1) return false;
    const std::optional<PoolWindow> w = pool_window(member(1), top_of(0, bottoms));
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
    return preparation.tops[0].count(2) > 1 && pooling_is_profitable(context, case_of(preparation));
  }

  ConvCase case_of(const Preparation& preparation) const {
    Preparation inner = preparation;
    inner.tops = {top_of(0, preparation.bottoms)};
    inner.top_edge.relu = fuses("ReLU");  // the pooling takes the gradient through it
    ConvCase c = static_cast<const ConvolutionBase&>(member(0)).case_of(inner);
    c.pooled = {preparation.tops[0][2], preparation.tops[0][3]};
    return c;
  }

  struct PooledState : State {
    std::unique_ptr<PooledConv> kernel;
  };

  std::optional<Prepared> prepare_kernels(Context& context,
                                          const Preparation& preparation) const override {
    // The kernel computes the bias gradient together with the weights'.
    const std::vector<bool>& learned = preparation.parameter_needs_diff;
    if (!allows_fusion(context) ||
        !is_profitable(context, preparation.bottoms, preparation.precision) ||
        (learned.size() > 1 && learned[1] && !learned[0]))
      return std::nullopt;
    const ConvCase c = case_of(preparation);
    if (c.quantization) return std::nullopt;
    std::string reason;
    std::unique_ptr<PooledConv> kernel = pooled_conv_kernels.find(context, c, reason);
    if (!kernel ||
        (c.weights_format && !same_layout(*c.weights_format, kernel->weights_format(), c.w)))
      return std::nullopt;
    Prepared prepared;
    prepared.parameter_formats.resize(parameters().size());
    prepared.parameter_formats[0] = kernel->weights_format();
    prepared.half_parameters.assign(parameters().size(), true);
    prepared.adds_gradients = kernel->atomic_wgrad();
    prepared.make_state<PooledState>().kernel = std::move(kernel);
    return prepared;
  }

  DropoutMask mask(const Context& context, const Forward& pass) const {
    return dropout_.mask(context.random(id(), pass.pass, pass.live_pass), pass.share);
  }

  void forward_kernels(Context& context, const Forward& pass) const override {
    state_of<PooledState>(pass).kernel->forward(
        context, pass.bottom[0], pass.parameters[0],
        pass.parameters.size() > 1 ? pass.parameters[1] : Tensor(), pass.top[0], pass.saved[0],
        mask(context, pass));
  }

  void backward_kernels(Context& context, const Backward& pass) const override {
    PooledConv& kernel = *state_of<PooledState>(pass).kernel;
    const Tensor &dy = pass.top_diff[0], &argmax = pass.saved[0], &dw = pass.parameter_diff[0];
    const Tensor db = pass.parameter_diff.size() > 1 ? pass.parameter_diff[1] : Tensor();
    const auto bottom = [&] {
      if (const Tensor& dx = pass.bottom_diff[0])
        kernel.backward_data(context, dy, argmax, dropout_.factor, pass.parameters[0], dx);
    };
    if (!dw) return bottom();
    const auto weights = [&] {
      kernel.backward_weights(context, pass.bottom[0], dy, argmax, dropout_.factor, dw, db,
                              pass.accumulate[0], db && pass.accumulate[1]);
    };
    context.on_side_stream(pass.side_stream, weights, bottom);
  }

  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>&) const override {
    return member(0).multiply_adds(bottoms, {top_of(0, bottoms)});
  }

  DropoutParams dropout_;
};

REGISTER_FUSED(PooledConvolutionLayer, "Convolution+Pooling", "Convolution+ReLU+Pooling",
               "Convolution+Pooling+Dropout", "Convolution+ReLU+Pooling+Dropout");

}  // namespace
}  // namespace crema

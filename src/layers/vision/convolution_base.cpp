#include "layers/vision/convolution_base.h"

#include <algorithm>

#include "layers/vision/layer_quantization.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"
#include "proto/params/convolution.pb.h"

namespace crema {
namespace {

// Whether any top before top i has a gradient.
bool follows_gradient(const Backward& pass, size_t i) {
  return std::any_of(pass.top_diff.begin(), pass.top_diff.begin() + i,
                     [](const Tensor& diff) { return bool(diff); });
}

}  // namespace

OrderRule ConvolutionBase::order_rule() const {
  const size_t axes = spatial_.kernel.size();
  return spatial_.axis == 1 && axes <= 3 ? OrderRule::prefers_channels_last : OrderRule::row_major;
}

HalfRule ConvolutionBase::half_rule() const {
  // Half precision where cuDNN supports it.
  return spatial_.kernel.size() <= 3 ? HalfRule::prefers : HalfRule::never;
}

int64_t ConvolutionBase::padded_channels(DType storage) const {
  // For images: tensor cores take 4 or 8 channels at a time, and padding here is cheaper than
  // cuDNN's own padding in each pass. With strides, kernels fold pixels into channels
  // (kernels/conv/stem/stem_7x7s2.cuh, kernels/conv/space_to_depth.h).
  const bool strided = std::any_of(spatial_.stride.begin(), spatial_.stride.end(),
                                   [](int64_t stride) { return stride > 1; });
  const int64_t wanted = storage == DType::f16 ? 4 : storage != DType::bf16 ? 0 : strided ? 4 : 8;
  return !transposed() && groups_ == 1 && channels_ < wanted ? wanted : 0;
}

Edge ConvolutionBase::bottom_edge(int bottom) const {
  Edge edge;
  if (bottom == 0 && spatial_.axis == 1 && quantization_ && quantization_->x &&
      quantization_->x->is_byte())
    edge.rounded = quantization_->x;
  return edge;
}

void ConvolutionBase::setup(Context& context, const std::vector<Shape>& bottoms) {
  const ConvolutionParameter& p = params<ConvolutionParameter>();
  require(p.num_output() > 0,
          "convolution_param has no num_output (or 0): how many channels should the top have?");
  require(
      p.binary() == 0, "binary is ", p.binary(),
      ", but filters of -1 and 1 are not supported; without it the weights are used as they are");
  spatial_ = spatial_params(p, bottoms[0]);
  channels_ = bottoms[0][spatial_.axis];
  outputs_ = p.num_output();
  groups_ = p.group();
  if (depthwise_) {
    if (p.has_group() && groups_ != channels_) {
      context.log().warning(cat(name(), ": group ", groups_, " has no effect: ", type(),
                                " has a group for each of its ", channels_, " channels"));
    }
    groups_ = channels_;
  }
  bias_ = p.bias_term();
  sum_ = fuses("Sum");
  if (fuses("ReLU")) relu_ = params<ReLUParameter>().negative_slope();
  require(channels_ > 0, "the bottom has shape ", bottoms[0].brief(),
          ", which has no channels (axis ", spatial_.axis, ")");
  require(groups_ > 0 && channels_ % groups_ == 0, "group ", groups_,
          " does not divide the bottom's ", channels_,
          " channels; channels and num_output must both be multiples of group");
  require(outputs_ % groups_ == 0, "group ", groups_, " does not divide num_output ", outputs_,
          "; channels and num_output must both be multiples of group");
  Shape weights =
      transposed() ? Shape{channels_, outputs_ / groups_} : Shape{outputs_, channels_ / groups_};
  for (int64_t extent : spatial_.kernel) weights.push_back(extent);
  quantization_ = layer_quantization(message().quantization_param(), weights[0]);
  if (quantization_ && transposed()) {
    context.log().warning(cat(name(), ": quantization_param has no effect in ", type(),
                              ", which computes in float32"));
    quantization_.reset();
  }
  add_parameter(weights, p.weight_filler());
  if (bias_) add_parameter({outputs_}, p.bias_filler());
}

// A deconvolution's weights have a row for each channel of its bottom.
bool ConvolutionBase::give_bias(LayerParameter* message) const {
  if (transposed() || spatial_.axis != 1 || message->top_size() != 1 || quantization_) return false;
  message->mutable_convolution_param()->set_bias_term(true);
  return true;
}

Inference ConvolutionBase::infer(const std::vector<Shape>& bottoms) const {
  Inference inference;
  for (const Shape& bottom : bottoms) {
    if (sum_ && &bottom != &bottoms[0]) break;
    require(bottom == bottoms[0], "all bottoms must have one shape: the first has ",
            bottoms[0].brief(), ", another ", bottom.brief());
    require(bottom.axes() == spatial_.axis + 1 + static_cast<int>(spatial_.kernel.size()) &&
                bottom[spatial_.axis] == channels_,
            "the bottom has shape ", bottom.brief(), ", but the weights were made for ", channels_,
            " channels and ", spatial_.kernel.size(), " spatial axes");
    Shape top = bottom;
    top[spatial_.axis] = outputs_;
    for (size_t axis = 0; axis < spatial_.kernel.size(); ++axis) {
      int64_t& along = top[spatial_.axis + 1 + static_cast<int>(axis)];
      along = extent(axis, along);
    }
    inference.tops.push_back(std::move(top));
  }
  if (sum_) {
    require(bottoms[1] == inference.tops[0], "what is added has shape ", bottoms[1].brief(),
            ", but must have that of the convolution's top");
  }
  return inference;
}

ConvCase ConvolutionBase::case_of(const Preparation& preparation) const {
  ConvCase c;
  c.x = with_one_outer(transposed() ? preparation.tops[0] : preparation.bottoms[0]);
  c.y = with_one_outer(transposed() ? preparation.bottoms[0] : preparation.tops[0]);
  c.w = parameters()[0].shape;
  c.stride = spatial_.stride;
  c.pad = spatial_.pad;
  c.dilation = spatial_.dilation;
  c.groups = groups_;
  c.bias = bias_ && !transposed();
  (sum_ ? c.sum_relu : c.relu) = Relu{relu_.has_value(), relu_.value_or(0)};
  c.sum = sum_;
  c.relu_gradient_applied = preparation.top_edge.relu;
  c.statistics = preparation.top_edge.statistics && !transposed() && preparation.tops.size() == 1;
  c.affine_input = c.statistics && preparation.bottom_edge.affine;
  c.order = preparation.bottom_orders[0];
  c.x_channels = preparation.bottom_channels[0];
  c.weights_format = preparation.parameter_formats[0];
  c.packs_weights = preparation.packs_weights && !transposed();
  if (c.packs_weights) c.weights_format.reset();
  const auto any = [](const std::vector<bool>& flags) {
    return std::find(flags.begin(), flags.end(), true) != flags.end();
  };
  const bool bottom_diff = any(preparation.bottom_needs_diff);
  c.forward = !transposed() || bottom_diff;
  c.backward_data = transposed() || bottom_diff;
  c.backward_weights = any(preparation.parameter_needs_diff);
  c.dtype = preparation.storage;
  c.precision = preparation.precision;
  c.quantization = quantization_in(preparation, quantization_);
  c.x_bytes = preparation.bottom_edge.rounded.has_value();
  c.y_bytes = preparation.top_edge.rounded;
  c.only_y_bytes = preparation.top_edge.only_rounded;
  return c;
}

Prepared ConvolutionBase::prepare(Context& context, const Preparation& preparation) const {
  const ConvCase c = case_of(preparation);
  Prepared prepared;
  State& state = prepared.make_state<State>();
  state.fused_relu = c.relu_gradient_applied;
  state.kernel = make_conv(context, c);
  const LinearKernel& kernel = *state.kernel;
  const LinearKernel::PackedForm form = kernel.packed_form();
  if (form.bytes > 0) {
    prepared.packed = {form.name, form.bytes,
                       [&kernel](Context& here, const Tensor& rows, const Tensor& packed) {
                         kernel.pack(here, rows, packed);
                       }};
  }
  prepared.parameter_formats.resize(parameters().size());
  prepared.parameter_formats[0] = kernel.weights_format();
  prepared.half_parameters.assign(parameters().size(), is_half(c.dtype));
  prepared.workspace = kernel.workspace();
  const LinearKernelFeatures features = kernel.features();
  prepared.adds_gradients = features.atomic_wgrad;
  prepared.top_edge.statistics = c.statistics && features.forward_statistics;
  if (features.y_bytes) {
    prepared.top_edge.rounded = c.y_bytes;
    prepared.top_edge.only_rounded = c.only_y_bytes;
  }
  Edge& bottom = prepared.bottom_edge;
  bottom.rounded = preparation.bottom_edge.rounded;
  bottom.affine = c.affine_input && features.forward_affine_input;
  bottom.affine_gradient = bottom.affine && features.wgrad_affine_input;
  if (state.fused_relu) prepared.reads = {true, false};
  return prepared;
}

int64_t ConvolutionBase::multiply_adds(const std::vector<Shape>& bottoms,
                                       const std::vector<Shape>& tops) const {
  int64_t sum = 0;
  for (const Shape& shape : transposed() ? bottoms : tops)
    sum += shape.count() * parameters()[0].shape.count(1);
  return sum;
}

Tensor ConvolutionBase::view(const Tensor& tensor) const {
  if (spatial_.axis == 1) return tensor;
  return tensor.reshaped(with_one_outer(tensor.shape()));
}

Shape ConvolutionBase::with_one_outer(const Shape& shape) const {
  Shape view{shape.count(0, spatial_.axis)};
  for (int axis = spatial_.axis; axis < shape.axes(); ++axis) view.push_back(shape[axis]);
  return view;
}

bool ConvolutionBase::accumulates(const Backward& pass, size_t parameter, size_t i) {
  return pass.accumulate[parameter] || follows_gradient(pass, i);
}

void ConvolutionBase::backward(Context& context, const Backward& pass) const {
  const State& state = state_of<State>(pass);
  const LinearKernelFeatures features =
      transposed() ? LinearKernelFeatures{} : state.kernel->features();
  for (size_t i = 0; i < pass.top_diff.size(); ++i) {
    if (!pass.top_diff[i]) {
      if (pass.bottom_diff[i]) zero(context, pass.bottom_diff[i]);
      continue;
    }
    const Tensor db = bias_ ? pass.parameter_diff[1] : Tensor();
    const Tensor fused_db =
        begin_backward(context, features, view(pass.top_diff[i]),
                       relu_ && !state.fused_relu ? pass.top[i] : Tensor(), {relu_.value_or(0)}, db,
                       db && accumulates(pass, 1, i), bool(pass.parameter_diff[0]))
            .db;
    // Whatever adds to a gradient made on a side stream must run there, too.
    const bool begun = follows_gradient(pass, i) || pass.begun[0] || (fused_db && pass.begun[1]);
    if (pass.parameter_diff[0] && pass.bottom_diff[i] && !begun &&
        backward_both(context, pass, i, fused_db))
      continue;
    const auto bottom = [&] {
      if (pass.bottom_diff[i]) backward_bottom(context, pass, i);
    };
    if (!pass.parameter_diff[0]) {
      bottom();
    } else {
      context.on_side_stream(
          pass.side_stream, [&] { backward_weights(context, pass, i, fused_db); }, bottom);
    }
  }
}

}  // namespace crema

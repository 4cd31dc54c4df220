// Convolution: a learned filter slides over every image.
//   y[n,o,p] = b[o] + sum over c and k of w[o,c,k] * x[n, c, p*stride - pad + k*dilation]
// Shapes: x (N, C, spatial...), y (N, num_output, out...) with
//   out = (in + 2*pad - dilation*(kernel-1) - 1) / stride + 1, rounded down.
// One to six spatial axes; group splits the channels of x and y into independent parts. Several
// bottoms give one top each, with the same weights.
// Parameters: w (num_output, C/group, kernel...), b (num_output) unless bias_term is false.
// Gradient: dw correlates dy with x, dx correlates dy with the mirrored w, db sums dy.
// With quantization_param x and w are rounded to integers of few bits (crema quantize); gradients pass
// the rounding unchanged.
// ConvolutionDepthwise and DepthwiseConvolution (forks) are the same with one group per channel.
// Convolution3D and NdConvolution (forks) are the same: kernel_depth, temporal_stride and
// temporal_pad apply to time, the first of three axes. Convolution+ReLU, ConvolutionDepthwise+ReLU
// and DepthwiseConvolution+ReLU end in a ReLU (relu_param); the planner makes them. So does it
// Convolution+Sum and Convolution+Sum+ReLU, which add a second bottom, where no gradient is computed.
#include "layers/vision/convolution_base.h"

namespace crema {
namespace {

class ConvolutionLayer : public ConvolutionBase {
 public:
  explicit ConvolutionLayer(bool depthwise = false) : ConvolutionBase(depthwise) {}

 private:
  int64_t extent(size_t axis, int64_t bottom) const override {
    const int64_t window = spatial_.dilation[axis] * (spatial_.kernel[axis] - 1) + 1;
    const int64_t room = bottom + 2 * spatial_.pad[axis] - window;
    require(room >= 0, "the kernel does not fit on spatial axis ", axis, ": extent ", bottom,
            ", pad ", spatial_.pad[axis], " on both sides, kernel ", spatial_.kernel[axis],
            spatial_.dilation[axis] > 1
                ? cat(" with dilation ", spatial_.dilation[axis], ", together ", window)
                : "",
            "; a smaller kernel_size or a larger pad fits");
    return room / spatial_.stride[axis] + 1;
  }
  bool transposed() const override { return false; }

  void forward(Context& context, const Forward& pass) const override {
    LinearKernel& kernel = *state_of<State>(pass).kernel;
    if (pass.top_edge.statistics) {
      return kernel.forward_with_statistics(
          context, view(pass.bottom[0]), pass.bottom_edge(0).affine, pass.parameters[0],
          view(pass.top[0]), pass.top_edge.statistics, pass.workspace);
    }
    if (const Tensor& bytes = pass.bottom_edge(0).rounded; bytes || pass.top_edge.rounded) {
      return kernel.forward_with_bytes(context,
                                       {.x = bytes ? Tensor() : pass.bottom[0],
                                        .x_bytes = bytes,
                                        .w = pass.parameters[0],
                                        .b = bias_ ? pass.parameters[1] : Tensor(),
                                        .added = sum_ ? pass.bottom[1] : Tensor(),
                                        .y = pass.top[0],
                                        .y_bytes = pass.top_edge.rounded},
                                       pass.workspace);
    }
    if (sum_) {
      return kernel.forward_with_sum(context, view(pass.bottom[0]), pass.parameters[0],
                                     bias_ ? pass.parameters[1] : Tensor(), view(pass.bottom[1]),
                                     {relu_.has_value(), relu_.value_or(0)}, view(pass.top[0]),
                                     pass.workspace);
    }
    for (size_t i = 0; i < pass.bottom.size(); ++i) {
      kernel.forward(context, view(pass.bottom[i]), pass.parameters[0],
                     bias_ ? pass.parameters[1] : Tensor(), view(pass.top[i]), pass.workspace);
    }
  }

  // If the gradient has already been taken through the ReLU, doing so again changes nothing.
  bool with_relu(const Backward& pass) const {
    const State& state = state_of<State>(pass);
    return relu_ && !state.fused_relu && state.kernel->features().relu_gradient;
  }

  bool backward_both(Context& context, const Backward& pass, size_t i,
                     const Tensor& db) const override {
    LinearKernel& kernel = *state_of<State>(pass).kernel;
    if (!kernel.features().fused_gradients) return false;
    kernel.backward_both(context, view(pass.bottom[i]),
                         with_relu(pass) ? OutputGradient(view(pass.top_diff[i]), view(pass.top[i]))
                                         : OutputGradient(view(pass.top_diff[i])),
                         pass.parameters[0], view(pass.bottom_diff[i]), pass.parameter_diff[0], db,
                         accumulates(pass, 0, i), db && accumulates(pass, 1, i), pass.workspace);
    return true;
  }

  void backward_weights(Context& context, const Backward& pass, size_t i,
                        const Tensor& db) const override {
    LinearKernel& kernel = *state_of<State>(pass).kernel;
    if (pass.bottom_edge.affine) {
      return kernel.backward_weights_affine(context, view(pass.bottom[i]), pass.bottom_edge.affine,
                                            view(pass.top_diff[i]), pass.parameter_diff[0],
                                            accumulates(pass, 0, i), pass.side_workspace);
    }
    kernel.backward_weights(context, view(pass.bottom[i]),
                            with_relu(pass)
                                ? OutputGradient(view(pass.top_diff[i]), view(pass.top[i]))
                                : OutputGradient(view(pass.top_diff[i])),
                            pass.parameter_diff[0], db, accumulates(pass, 0, i),
                            db && accumulates(pass, 1, i), pass.side_workspace);
  }

  void backward_bottom(Context& context, const Backward& pass, size_t i) const override {
    state_of<State>(pass).kernel->backward_data(
        context,
        with_relu(pass) ? OutputGradient(view(pass.top_diff[i]), view(pass.top[i]))
                        : OutputGradient(view(pass.top_diff[i])),
        pass.parameters[0], view(pass.bottom_diff[i]), pass.workspace);
  }
};

struct DepthwiseConvolutionLayer : ConvolutionLayer {
  DepthwiseConvolutionLayer() : ConvolutionLayer(true) {}
};

REGISTER_FUSED(ConvolutionLayer, "Convolution+ReLU", "Convolution+Sum", "Convolution+Sum+ReLU");
REGISTER_FUSED(DepthwiseConvolutionLayer, "ConvolutionDepthwise+ReLU", "DepthwiseConvolution+ReLU");

}  // namespace
REGISTER_LAYER(Convolution, ConvolutionLayer);
REGISTER_LAYER(ConvolutionDepthwise, DepthwiseConvolutionLayer);
REGISTER_LAYER(DepthwiseConvolution, DepthwiseConvolutionLayer);
REGISTER_LAYER(Convolution3D, ConvolutionLayer);
REGISTER_LAYER(NdConvolution, ConvolutionLayer);
}  // namespace crema

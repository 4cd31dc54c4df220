// Deconvolution (transposed convolution): the gradient of a convolution used forward; upsamples.
//   y[n, o, p*stride - pad + k*dilation] += w[c,o,k] * x[n,c,p], over c, p and k, plus b[o]
// Shapes: x (N, C, spatial...), y (N, num_output, out...) with
//   out = stride*(in-1) + dilation*(kernel-1) + 1 - 2*pad.
// With weight_filler bilinear, group = num_output = C and lr_mult 0 it is bilinear upsampling.
// Parameters: w (C, num_output/group, kernel...), b (num_output) unless bias_term is false.
// Gradient: dx is the convolution of dy with w, dw correlates x with dy, db sums dy.
// Deconvolution3D (a fork) is the same: kernel_depth, temporal_stride and temporal_pad apply to
// time, the first of three axes.
#include "kernels/pointwise/bias.h"
#include "layers/vision/convolution_base.h"
#include "tensor/on.h"

namespace crema {
namespace {

class DeconvolutionLayer : public ConvolutionBase {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::convolution, .learned = 1};

 private:
  int64_t extent(size_t axis, int64_t bottom) const override {
    const int64_t window = spatial_.dilation[axis] * (spatial_.kernel[axis] - 1) + 1;
    const int64_t top = spatial_.stride[axis] * (bottom - 1) + window - 2 * spatial_.pad[axis];
    require(top > 0, "nothing is left on spatial axis ", axis, ": extent ", bottom, ", kernel ",
            spatial_.kernel[axis], ", stride ", spatial_.stride[axis], " give ",
            top + 2 * spatial_.pad[axis], ", and pad cuts ", spatial_.pad[axis],
            " off both ends; a smaller pad is needed");
    return top;
  }
  bool transposed() const override { return true; }

  void forward(Context& context, const Forward& pass) const override {
    LinearKernel& kernel = *state_of<State>(pass).kernel;
    for (size_t i = 0; i < pass.bottom.size(); ++i) {
      const Tensor y = view(pass.top[i]);
      kernel.backward_data(context, view(pass.bottom[i]), pass.parameters[0], y, pass.workspace);
      if (!bias_) continue;
      const bool last = y.format().order == Order::channels_last;
      const int64_t points = y.shape().count(2);
      on_real(y, [&]<typename T>() {
        add_bias(context, last ? y.shape()[0] * points : y.shape()[0], outputs_, last ? 1 : points,
                 pass.parameters[1].data<T>(), Relu{}, y.data<T>());
      });
    }
  }

  void backward_weights(Context& context, const Backward& pass, size_t i,
                        const Tensor&) const override {
    state_of<State>(pass).kernel->backward_weights(
        context, view(pass.top_diff[i]), view(pass.bottom[i]), pass.parameter_diff[0], Tensor(),
        accumulates(pass, 0, i), false, pass.side_workspace);
  }

  void backward_bottom(Context& context, const Backward& pass, size_t i) const override {
    state_of<State>(pass).kernel->forward(context, view(pass.top_diff[i]), pass.parameters[0],
                                          Tensor(), view(pass.bottom_diff[i]), pass.workspace);
  }
};

}  // namespace
REGISTER_LAYER(Deconvolution, DeconvolutionLayer);
REGISTER_LAYER(Deconvolution3D, DeconvolutionLayer);
}  // namespace crema

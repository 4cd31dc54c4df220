#include "kernels/norm/scale.h"
#include "kernels/pointwise/channel_pass.cuh"

namespace crema {
namespace {

struct ScaleAndShift {
  static constexpr int kInputs = 1, kValues = 2, kSums = 0;
  CREMA_HD static float apply(const float* in, const float* value, float*) {
    return in[0] * value[0] + value[1];
  }
};

struct GradientOfShift {
  static constexpr int kInputs = 1, kValues = 1, kSums = 1;
  CREMA_HD static float apply(const float* in, const float* value, float* sum) {
    sum[0] = in[0];
    return in[0] * value[0];
  }
};

struct GradientOfBoth {
  static constexpr int kInputs = 2, kValues = 1, kSums = 2;  // in: dy and x
  CREMA_HD static float apply(const float* in, const float* value, float* sum) {
    sum[0] = in[0] * in[1];
    sum[1] = in[0];
    return in[0] * value[0];
  }
};

Refusal scale_forward_gpu(Context& context, const ChannelView& view, const Tensor& factor,
                          const Tensor& shift, const Tensor& x, const Tensor& y) {
  if (x.dtype() == DType::f64) return "not in float64";
  ChannelPassTensors tensors;
  tensors.in[0] = x;
  tensors.out = y;
  tensors.value[0] = factor;
  tensors.value[1] = shift;
  channel_pass<ScaleAndShift>(context, view, tensors);
  return nullptr;
}

Refusal scale_backward_gpu(Context& context, const ChannelView& view, const Tensor& factor,
                           const Tensor& x, const Tensor& dy, const ScaleGradients& g,
                           const Tensor& /*workspace*/) {
  if (dy.dtype() == DType::f64) return "not in float64";
  ChannelPassTensors tensors;
  tensors.in[0] = dy;
  // Without a factor dx equals dy: where it shares dy's memory it need not be written.
  if (factor || g.dx.raw() != dy.raw()) tensors.out = g.dx;
  tensors.value[0] = factor;
  if (g.d_factor) {
    tensors.in[1] = x;
    tensors.sum[0] = g.d_factor;
    tensors.accumulate[0] = g.accumulate_factor;
    tensors.sum[1] = g.d_shift;
    tensors.accumulate[1] = g.accumulate_shift;
    channel_pass<GradientOfBoth>(context, view, tensors);
  } else if (g.d_shift) {
    tensors.sum[0] = g.d_shift;
    tensors.accumulate[0] = g.accumulate_shift;
    channel_pass<GradientOfShift>(context, view, tensors);
  } else if (tensors.out) {
    channel_pass<ScaleAndShift>(context, view, tensors);
  }
  return nullptr;
}

REGISTER_KERNEL(scale_forward_kernels, "cuda", RunsOn::gpu, 10, scale_forward_gpu);
REGISTER_KERNEL(scale_backward_kernels, "cuda", RunsOn::gpu, 10, scale_backward_gpu);

}  // namespace
}  // namespace crema

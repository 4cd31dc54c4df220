#include "kernels/pointwise/channel_pass.cuh"
#include "kernels/pointwise/prelu.h"

namespace crema {
namespace {

struct PreluValue {
  static constexpr int kInputs = 1, kValues = 1, kSums = 0;
  CREMA_HD static float apply(const float* in, const float* slope, float*) {
    return in[0] > 0 ? in[0] : slope[0] * in[0];
  }
};

struct PreluGradient {
  static constexpr int kInputs = 2, kValues = 1, kSums = 1;  // in: dy and x
  CREMA_HD static float apply(const float* in, const float* slope, float* sum) {
    const bool right = in[1] > 0;
    sum[0] = right ? 0.0f : in[0] * in[1];
    return right ? in[0] : slope[0] * in[0];
  }
};

Refusal prelu_forward_gpu(Context& context, const ChannelView& view, const Tensor& slopes,
                          const Tensor& x, const Tensor& y) {
  if (x.dtype() == DType::f64) return "not in float64";
  ChannelPassTensors tensors;
  tensors.in[0] = x;
  tensors.out = y;
  tensors.value[0] = slopes;
  channel_pass<PreluValue>(context, view, tensors);
  return nullptr;
}

Refusal prelu_backward_gpu(Context& context, const ChannelView& view, const Tensor& slopes,
                           const Tensor& x, const Tensor& dy, const Tensor& dx,
                           const Tensor& d_slopes, bool accumulate) {
  if (x.dtype() == DType::f64) return "not in float64";
  ChannelPassTensors tensors;
  tensors.in[0] = dy;
  tensors.in[1] = x;
  tensors.out = dx;
  tensors.value[0] = slopes;
  tensors.sum[0] = d_slopes;
  tensors.accumulate[0] = accumulate;
  channel_pass<PreluGradient>(context, view, tensors);
  return nullptr;
}

REGISTER_KERNEL(prelu_forward_kernels, "cuda", RunsOn::gpu, 10, prelu_forward_gpu);
REGISTER_KERNEL(prelu_backward_kernels, "cuda", RunsOn::gpu, 10, prelu_backward_gpu);

}  // namespace
}  // namespace crema

#include "kernels/norm/scale.h"

namespace crema {

size_t scale_workspace(Context& context, const ChannelView& view) {
  return 2 * view.values() * sizeof(double) + channel_sums_scratch(context, view);
}

void scale_forward(Context& context, const ChannelView& view, const Tensor& factor,
                   const Tensor& shift, const Tensor& x, const Tensor& y) {
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu && x.dtype() != DType::f64)
    return scale_forward_gpu(context, view, factor, shift, x, y);
#endif
  ChannelAffine affine;
  affine.factor = factor;
  affine.shift = shift;
  channel_affine(context, view, affine, x, y);
}

void scale_backward(Context& context, const ChannelView& view, const Tensor& factor,
                    const Tensor& x, const Tensor& dy, const ScaleGradients& g,
                    const Tensor& workspace) {
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu && dy.dtype() != DType::f64)
    return scale_backward_gpu(context, view, factor, x, dy, g);
#endif
  ChannelGradient gradient;
  gradient.dy = dy;
  if (g.d_factor || g.d_shift) {
    if (g.d_factor) gradient.x = x;
    double* sums = workspace.data<double>();
    channel_sums(context, view, gradient, {}, sums, sums + 2 * view.values());
    if (g.d_factor) store_sums(context, sums + view.values(), g.d_factor, g.accumulate_factor);
    if (g.d_shift) store_sums(context, sums, g.d_shift, g.accumulate_shift);
  }
  if (!g.dx) return;
  if (!factor) {
    if (g.dx.raw() != dy.raw()) copy(context, dy, g.dx);
    return;
  }
  gradient.x = {};
  gradient.factor = factor;
  channel_gradient(context, view, gradient, {}, {}, g.dx);
}

}  // namespace crema

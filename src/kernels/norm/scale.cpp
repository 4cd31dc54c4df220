#include "kernels/norm/scale.h"

#include "kernels/core/implementation.h"

namespace crema {

namespace {

bool forward_plain(Context& context, const ChannelView& view, const Tensor& factor,
                   const Tensor& shift, const Tensor& x, const Tensor& y) {
  if (is_half(x.dtype())) return false;
  ChannelAffine affine;
  affine.factor = factor;
  affine.shift = shift;
  channel_affine(context, view, affine, x, y);
  return true;
}

bool backward_plain(Context& context, const ChannelView& view, const Tensor& factor,
                    const Tensor& x, const Tensor& dy, const ScaleGradients& g,
                    const Tensor& workspace) {
  if (is_half(dy.dtype())) return false;
  ChannelTerm gradient;
  gradient.dy = dy;
  if (g.d_factor || g.d_shift) {
    if (g.d_factor) gradient.x = x;
    double* sums = workspace.data<double>();
    channel_sums(context, view, gradient, {}, sums, sums + 2 * view.values());
    if (g.d_factor) store_sums(context, sums + view.values(), g.d_factor, g.accumulate_factor);
    if (g.d_shift) store_sums(context, sums, g.d_shift, g.accumulate_shift);
  }
  if (!g.dx) return true;
  if (!factor) {
    if (g.dx.raw() != dy.raw()) copy(context, dy, g.dx);
    return true;
  }
  gradient.x = {};
  gradient.factor = factor;
  channel_gradient(context, view, gradient, {}, {}, g.dx);
  return true;
}

using ScaleForwardFunction =
    KernelFunction<const ChannelView&, const Tensor&, const Tensor&, const Tensor&, const Tensor&>;
using ScaleBackwardFunction = KernelFunction<const ChannelView&, const Tensor&, const Tensor&,
                                             const Tensor&, const ScaleGradients&, const Tensor&>;

constexpr ScaleForwardFunction kScaleForward[] = {
#ifdef CREMA_CUDA
    {"cuda", scale_forward_gpu},
#endif
    {"plain", forward_plain},
};
constexpr ScaleBackwardFunction kScaleBackward[] = {
#ifdef CREMA_CUDA
    {"cuda", scale_backward_gpu},
#endif
    {"plain", backward_plain},
};

}  // namespace

size_t scale_workspace(Context& context, const ChannelView& view) {
  return 2 * view.values() * sizeof(double) + channel_sums_scratch(context, view);
}

void scale_forward(Context& context, const ChannelView& view, const Tensor& factor,
                   const Tensor& shift, const Tensor& x, const Tensor& y) {
  run_first(context, "the scale", kScaleForward, view, factor, shift, x, y);
}

void scale_backward(Context& context, const ChannelView& view, const Tensor& factor,
                    const Tensor& x, const Tensor& dy, const ScaleGradients& g,
                    const Tensor& workspace) {
  run_first(context, "the gradient of the scale", kScaleBackward, view, factor, x, dy, g,
            workspace);
}

}  // namespace crema

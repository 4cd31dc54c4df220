#include "kernels/norm/scale.h"

namespace crema {
namespace {

Refusal scale_forward_plain(Context& context, const ChannelView& view, const Tensor& factor,
                            const Tensor& shift, const Tensor& x, const Tensor& y) {
  if (is_half(x.dtype())) return "in 32 and 64 bits only";
  ChannelAffine affine;
  affine.factor = factor;
  affine.shift = shift;
  channel_affine(context, view, affine, x, y);
  return nullptr;
}

Refusal scale_backward_plain(Context& context, const ChannelView& view, const Tensor& factor,
                             const Tensor& x, const Tensor& dy, const ScaleGradients& g,
                             const Tensor& workspace) {
  if (is_half(dy.dtype())) return "in 32 and 64 bits only";
  ChannelTerm gradient;
  gradient.dy = dy;
  if (g.d_factor || g.d_shift) {
    if (g.d_factor) gradient.x = x;
    double* sums = workspace.data<double>();
    channel_sums(context, view, gradient, {}, sums, sums + 2 * view.values());
    if (g.d_factor) store_sums(context, sums + view.values(), g.d_factor, g.accumulate_factor);
    if (g.d_shift) store_sums(context, sums, g.d_shift, g.accumulate_shift);
  }
  if (!g.dx) return nullptr;
  if (!factor) {
    if (g.dx.raw() != dy.raw()) copy(context, dy, g.dx);
    return nullptr;
  }
  gradient.x = {};
  gradient.factor = factor;
  channel_gradient(context, view, gradient, {}, {}, g.dx);
  return nullptr;
}

REGISTER_KERNEL(scale_forward_kernels, "plain", RunsOn::both, 0, scale_forward_plain);
REGISTER_KERNEL(scale_backward_kernels, "plain", RunsOn::both, 0, scale_backward_plain);

}  // namespace

constinit decltype(scale_forward_kernels) scale_forward_kernels("the scale");
constinit decltype(scale_backward_kernels) scale_backward_kernels("the gradient of the scale");

size_t scale_workspace(Context& context, const ChannelView& view) {
  return 2 * view.values() * sizeof(double) + channel_sums_scratch(context, view);
}

void scale_forward(Context& context, const ChannelView& view, const Tensor& factor,
                   const Tensor& shift, const Tensor& x, const Tensor& y) {
  scale_forward_kernels.run(context, view, factor, shift, x, y);
}

void scale_backward(Context& context, const ChannelView& view, const Tensor& factor,
                    const Tensor& x, const Tensor& dy, const ScaleGradients& g,
                    const Tensor& workspace) {
  scale_backward_kernels.run(context, view, factor, x, dy, g, workspace);
}

}  // namespace crema

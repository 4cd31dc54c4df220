// The kernels of Scale, Bias and Axpy: y = x * factor + shift with one value per channel, and the
// gradient. On a GPU x may have 16 bits, and each of the values and their gradients x's dtype or
// float32; one pass computes all gradients.
#pragma once

#include "kernels/core/kernel_registry.h"
#include "kernels/pointwise/channel.h"

namespace crema {

// factor, shift: 1 and 0 where empty, but not both. y may share the memory of x.
void scale_forward(Context& context, const ChannelView& view, const Tensor& factor,
                   const Tensor& shift, const Tensor& x, const Tensor& y);

// Gradients that are not wanted are empty. dx may share the memory of dy.
struct ScaleGradients {
  Tensor dx, d_factor, d_shift;
  bool accumulate_factor = false, accumulate_shift = false;
};

// dx = dy * factor, d_factor = sum of dy * x and d_shift = sum of dy over a channel's elements. x
// is read for d_factor only. workspace: scale_workspace() bytes.
void scale_backward(Context& context, const ChannelView& view, const Tensor& factor,
                    const Tensor& x, const Tensor& dy, const ScaleGradients& gradients,
                    const Tensor& workspace);
size_t scale_workspace(Context& context, const ChannelView& view);

// Their implementations.
extern KernelsOf<decltype(scale_forward)> scale_forward_kernels;
extern KernelsOf<decltype(scale_backward)> scale_backward_kernels;

}  // namespace crema

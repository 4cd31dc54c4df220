// PReLU: y = x where x > 0, slope * x elsewhere, with one slope per channel, and its gradients.
// Slopes and their gradient are float32 where x has 16 bits, which is supported on a GPU. The other
// tensors have one shape, layout and dtype, of which `view` is a view.
#pragma once

#include "kernels/core/kernel_registry.h"
#include "kernels/pointwise/channel.h"

namespace crema {

// y may be x.
void prelu_forward(Context& context, const ChannelView& view, const Tensor& slopes, const Tensor& x,
                   const Tensor& y);

// dx = dy where x > 0, slope * dy elsewhere; d_slopes = sum of dy * x over x <= 0, added to the old
// value when `accumulate`. Gradients that are not wanted are empty; dx may be dy.
void prelu_backward(Context& context, const ChannelView& view, const Tensor& slopes,
                    const Tensor& x, const Tensor& dy, const Tensor& dx, const Tensor& d_slopes,
                    bool accumulate);

// Their implementations.
extern KernelsOf<decltype(prelu_forward)> prelu_forward_kernels;
extern KernelsOf<decltype(prelu_backward)> prelu_backward_kernels;

}  // namespace crema

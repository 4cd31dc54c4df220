// Max and average pooling with dilation, over any number of spatial axes. kernels/pool/pool.h is
// faster for up to three axes without dilation. Shapes: x (N, C, spatial axes), y the same with the
// output's extents; NCHW or channels-last.
#pragma once

#include <vector>

#include "kernels/core/kernel_registry.h"
#include "kernels/pool/pool.h"

namespace crema {

// One entry per spatial axis; at most kMaxSpatialAxes (kernels/core/axes.h).
struct PoolNd {
  std::vector<int64_t> kernel, stride, pad, dilation;
  // Whether the mean's divisor counts padding cells.
  bool count_padding = true;
};

// `average`: the mean, otherwise the maximum, the first of equal values in scan order. An empty
// window gives -FLT_MAX (max) or 0. `index` (i32) and `mask` (dtype of y), shaped like y, receive
// the selected cell's position in its channel, -1 for none; both may be empty.
void pool_nd_forward(Context& context, const PoolNd& window, bool average, const Tensor& x,
                     const Tensor& y, const Tensor& index, const Tensor& mask);

// dx is overwritten. `index` is read unless `average`.
void pool_nd_backward(Context& context, const PoolNd& window, bool average, const Tensor& index,
                      const Tensor& dy, const Tensor& dx);

// Their implementations.
extern KernelsOf<decltype(pool_nd_forward)> pool_nd_forward_kernels;
extern KernelsOf<decltype(pool_nd_backward)> pool_nd_backward_kernels;

}  // namespace crema

// Max and average pooling over any number of spatial axes, whose windows may have gaps between
// their cells. kernels/pool/pool.h serves up to three axes without gaps, faster.
// Shapes: x (N, C, spatial axes), y the same with the output's extents; plain or channels-last.
#pragma once

#include <vector>

#include "kernels/pool/pool.h"

namespace crema {

// One entry a spatial axis; at most kMostSpatialAxes (kernels/conv/conv.h).
struct PoolAxes {
  std::vector<int64_t> kernel, stride, pad, dilation;
  // Whether the mean's divisor counts cells of the padding.
  bool count_padding = true;
};

// `average`: the mean, else the largest value, of equal ones the first in scan order. A window
// without a cell gives -FLT_MAX (largest) or 0. `index` (i32) and `mask` (dtype of y), shaped like
// y, get the kept cell's place in its channel, -1 for none; both may be empty.
void pool_axes_forward(Context& context, const PoolAxes& window, bool average, const Tensor& x,
                       const Tensor& y, const Tensor& index, const Tensor& mask);

// dx is overwritten. `index` is read unless `average`.
void pool_axes_backward(Context& context, const PoolAxes& window, bool average, const Tensor& index,
                        const Tensor& dy, const Tensor& dx);

void pool_axes_forward_cpu(const PoolAxes& window, bool average, const Tensor& x, const Tensor& y,
                           const Tensor& index, const Tensor& mask);
void pool_axes_backward_cpu(const PoolAxes& window, bool average, const Tensor& index,
                            const Tensor& dy, const Tensor& dx);

// GPU, channels-last, not float64: false, with nothing done, for what the body for every order and
// dtype has to do.
bool pool_axes_forward_gpu(Context& context, const PoolAxes& window, bool average, const Tensor& x,
                           const Tensor& y, const Tensor& index, const Tensor& mask);
bool pool_axes_backward_gpu(Context& context, const PoolAxes& window, bool average,
                            const Tensor& index, const Tensor& dy, const Tensor& dx);

}  // namespace crema

// Bilinear resize of images; the first and the last rows and columns map onto each other
// (align_corners).
//   y[h] = (1 - l) * x[i] + l * x[i + 1]   with i + l = h * (H - 1) / (H' - 1), and so for columns
// Shapes: x (N, C, H, W), y (N, C, H', W'); both NCHW or both channels-last.
#pragma once

#include "kernels/core/kernel_registry.h"
#include "tensor/tensor.h"

namespace crema {

// The part of x that is resized: without `before` leading and `behind` trailing rows and columns.
struct InterpolationCut {
  int64_t before = 0, behind = 0;
};

void interpolate(Context& context, const InterpolationCut& cut, const Tensor& x, const Tensor& y);
// dx is overwritten.
void interpolate_gradient(Context& context, const InterpolationCut& cut, const Tensor& dy,
                          const Tensor& dx);

// Their implementations.
extern KernelsOf<decltype(interpolate)> interpolate_kernels;
extern KernelsOf<decltype(interpolate_gradient)> interpolate_gradient_kernels;

}  // namespace crema

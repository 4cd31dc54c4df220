// N-dimensional convolution, forward and both gradients.
//   y[n,o,p] = b[o] + sum over c, k of w[o,c,k] * x[n, g(o)*C/G + c, p*stride - pad + k*dilation]
// Shapes: x (N, C, spatial...), w (O, C/G, kernel...), b (O), y (N, O, out...).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/conv/linear_kernel.h"
#include "kernels/core/axes.h"
#include "kernels/core/implementation.h"
#include "tensor/precision.h"
#include "tensor/tensor.h"

namespace crema {

struct ConvCase {
  Shape x, w, y;
  // One entry per spatial axis; at least one axis, at most kMaxSpatialAxes.
  std::vector<int64_t> stride, pad, dilation;
  int64_t groups = 1;
  bool bias = false;
  // Forward ends with y = max(y, 0) + relu_slope * min(y, 0); the caller computes its gradient.
  bool relu = false;
  float relu_slope = 0;
  bool relu_taken = false;  // the incoming gradient has already passed through the ReLU
  bool dropout = false;     // forward_with_dropout() will be called
  bool sums = false;        // forward_with_sums() will be called, if gives_sums()
  bool affine = false;      // and may be given `affine`, if takes_affine()
  // Spatial extents after a following 2 x 2 max pooling that the kernels of conv_pooled.h fuse;
  // empty without one.
  std::vector<int64_t> pooled;
  Order order = Order::row_major;        // of x and y
  int64_t x_channels = 0;                // of x in memory, if padded (Format::channels)
  std::optional<Format> weights_format;  // fixed elsewhere; none: free
  // Which of the calls will be made.
  bool forward = true, backward_data = false, backward_weights = false;
  DType dtype = DType::f32;  // of x, w, b and y; dw and db are float32 when that is a 16-bit type
  Precision precision = Precision::fp32;
};

// Chooses from: fastest (the autotuner, on a GPU in 16 bits: implicit_gemm.h, the next six and
// depthwise), rows (stem_7x7s2.cuh), pixels (stem_3x3.cuh), blocks (space_to_depth.h), groups (each
// by cuDNN), cudnn, tensor (depthwise on tensor cores), onednn, depthwise (depthwise.h), im2col,
// plain. If the case fixes a weights_format, the result has it.
std::unique_ptr<LinearKernel> make_conv(Context& context, const ConvCase& c);

}  // namespace crema

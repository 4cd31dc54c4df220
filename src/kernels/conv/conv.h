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
  // One entry a spatial axis; at least one axis, at most kMostSpatialAxes.
  std::vector<int64_t> stride, pad, dilation;
  int64_t groups = 1;
  bool bias = false;
  // Forward ends with y = max(y, 0) + slope * min(y, 0); its gradient is the caller's work.
  bool relu = false;
  float relu_slope = 0;
  bool relu_taken = false;  // the gradient that arrives is taken through the ReLU already
  bool dropout = false;     // forward_dropping() will be called
  bool sums = false;        // forward_summing() will be called, if gives_sums()
  bool affine = false;      // and may be given `affine`, if takes_affine()
  // Places of a max pooling of 2 x 2 behind it, which the kernels of conv_pooled.h take along; none
  // otherwise.
  std::vector<int64_t> pooled;
  Order order = Order::plain;            // of x and y
  int64_t x_channels = 0;                // of x in memory when it is padded (Format::channels)
  std::optional<Format> weights_format;  // already decided elsewhere; none: free
  // Which calls will be made.
  bool forward = true, backward_data = false, backward_weights = false;
  DType dtype = DType::f32;  // of x, w, b and y; dw and db are float32 when that is a 16-bit type
  Precision precision = Precision::fp32;
};

// Chooses from fastest (of implicit_gemm.h, the next six and depthwise, 16 bits on a GPU),
// rows (stem_7x7s2.cuh), pixels (stem_3x3.cuh), blocks (space_to_depth.h), groups (each by cuDNN),
// cudnn, tensor and, not on tensor cores, depthwise (depthwise.h), onednn, im2col, plain. The
// result's weights_format() is the one asked for, if one was.
std::unique_ptr<WeightedSum> make_conv(Context& context, const ConvCase& c);

}  // namespace crema

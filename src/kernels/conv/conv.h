// N-dimensional convolution, forward and both gradients.
//   y[n,o,p] = b[o] + sum over c, k of w[o,c,k] * x[n, g(o)*C/G + c, p*stride - pad + k*dilation]
// Shapes: x (N, C, spatial...), w (O, C/G, kernel...), b (O), y (N, O, out...).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/conv/linear_kernel.h"
#include "kernels/conv/quantized/quantization.h"
#include "kernels/core/axes.h"
#include "kernels/core/kernel_registry.h"
#include "kernels/pointwise/bias.h"
#include "tensor/precision.h"
#include "tensor/tensor.h"

namespace crema {

struct ConvCase {
  Shape x, w, y;
  // One entry per spatial axis; at least one axis, at most kMaxSpatialAxes.
  std::vector<int64_t> stride, pad, dilation;
  int64_t groups = 1;
  bool bias = false;
  // Forward ends with it; backward applies its gradient if it is given y (OutputGradient).
  Relu relu;
  bool relu_gradient_applied = false;  // dy has passed through the ReLU before it arrives
  bool dropout = false;                // forward_with_dropout() will be called
  // forward_with_sum() will be called, whose ReLU this is; `relu` is off.
  bool sum = false;
  Relu sum_relu;
  bool statistics = false;    // forward_with_statistics() will be called if the kernel supports it
  bool affine_input = false;  // `affine` may be given if the kernel supports it
  // Spatial extents after a following 2 x 2 max pooling that the kernels of conv_pooled.h fuse;
  // empty without one.
  std::vector<int64_t> pooled;
  Order order = Order::row_major;        // of x and y
  int64_t x_channels = 0;                // of x in memory, if padded (Format::channels)
  std::optional<Format> weights_format;  // fixed elsewhere; none: free
  bool packs_weights = false;            // the caller calls LinearKernel::pack()
  // Which of the calls will be made.
  bool forward = true, backward_data = false, backward_weights = false;
  // The autotuner compares the kernel with others: it may support only some of the calls
  // (LinearKernelFeatures::calls), and LinearKernel::tune() follows.
  bool is_candidate = false;
  DType dtype = DType::f32;  // of x, w, b and y; dw and db are float32 when that is a 16-bit type
  Precision precision = Precision::fp32;
  // Round x, w and y to integers: the case goes to quantized_conv_kernels.
  std::optional<LinearQuantization> quantization;
  // forward_with_bytes() will be called. x arrives as the integers of quantization->x; y leaves as those of
  // y_bytes (if the kernel supports it), and with only_y_bytes as nothing else. Each is the low byte of its integer.
  bool x_bytes = false;
  std::optional<QuantizedValues> y_bytes;
  bool only_y_bytes = false;

  ConvCalls calls() const { return {forward, backward_data, backward_weights}; }
  // dy arrives without the ReLU's gradient: the caller or the kernel applies it.
  bool needs_relu_gradient() const { return relu.on && !relu_gradient_applied; }
};

// The case's types and sizes, for keys of the tuning cache.
std::string sizes_of(const ConvCase& c);

// If the case fixes a weights_format, the result has it.
std::unique_ptr<LinearKernel> make_conv(Context& context, const ConvCase& c);

// Their implementations, which may have another weights_format.
extern KernelMakers<LinearKernel, ConvCase> conv_kernels;

// Those of cases with `quantization`. "plain" rounds to float32 and has a kernel of conv_kernels
// compute.
extern KernelMakers<LinearKernel, ConvCase> quantized_conv_kernels;

}  // namespace crema

// A fully connected layer: y = relu(x w' + b), and its gradients.
// Shapes: x (rows, inputs), w (outputs, inputs) or (inputs, outputs) when transposed, b (outputs),
// y (rows, outputs).
#pragma once

#include <memory>

#include "kernels/conv/conv.h"
#include "kernels/conv/linear_kernel.h"
#include "kernels/core/kernel_registry.h"
#include "kernels/pointwise/bias.h"
#include "tensor/precision.h"
#include "tensor/tensor.h"

namespace crema {

struct DenseCase {
  int64_t rows = 0, inputs = 0, outputs = 0;
  bool transposed = false, bias = false;
  Relu relu;
  bool relu_gradient_applied = false;                    // as in ConvCase
  bool dropout = false;                                  // forward_with_dropout() will be called
  bool backward_data = false, backward_weights = false;  // calls that will be made
  bool is_candidate = false;                             // as in ConvCase
  DType dtype = DType::f32;  // of x, w, b and y; dw and db are float32 when that is a 16-bit type
  Precision precision = Precision::fp32;
  std::optional<LinearQuantization> quantization;  // as in ConvCase; not with `transposed`
  bool packs_weights = false;                      // as in ConvCase; with `quantization` only
};

// The same case, weights not transposed, as a convolution over images of one pixel.
ConvCase conv_case_of(const DenseCase& c);

std::unique_ptr<LinearKernel> make_dense(Context& context, const DenseCase& c);

// Their implementations.
extern KernelMakers<LinearKernel, DenseCase> dense_kernels;

}  // namespace crema

// Pooling: a window slides over each channel and produces one value per position.
//   max         the maximum; the first of equal values in scan order
//   average     the sum over the number of cells, including those of the padding unless
//               count_padding is off
//   stochastic  in training a value drawn with probability x / sum(x), in testing
//               sum(x^2) / sum(x)
// Shapes: x (N, C, one to three spatial axes), y the same with the output's extents; both NCHW or
// both channels-last.
#pragma once

#include "tensor/tensor.h"

namespace crema {

enum class PoolMethod { max, average, stochastic, stochastic_test };

// A window with fewer than three axes uses the last ones here: in 2-D kernel is {1, height, width}.
struct PoolWindow {
  PoolMethod method = PoolMethod::max;
  int64_t kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1};
  int64_t pad[3] = {0, 0, 0};
  bool count_padding = true;
  // x comes from a ReLU (relu_before), or y goes through one (relu_after): backward also applies
  // the gradient of this ReLU. Only max.
  bool relu_before = false, relu_after = false;

  // Outputs that are not positive pass no gradient: theirs would not pass the ReLU.
  bool only_positive() const { return relu_before || relu_after; }

  // stochastic: images of the batch before those of this rank, whose random numbers are others.
  int64_t first_image = 0;

  int64_t cells() const { return kernel[0] * kernel[1] * kernel[2]; }
  // Dtype of the index tensor, which stores the selected cell of each output's window: one byte
  // where that suffices.
  DType index_dtype() const { return cells() <= 255 ? DType::u8 : DType::i32; }
  // True when backward needs the index tensor.
  bool has_index() const { return method == PoolMethod::max || method == PoolMethod::stochastic; }
};

// An empty window gives -FLT_MAX (max) or 0, and no gradient. `index` (shape of y, index_dtype();
// -1 or 255 for an output that passes no gradient) and `mask` (shape and dtype of y: the selected
// cell's position in its channel, -1 for none) may be empty.
void pool_forward(Context& context, const PoolWindow& window, const PassRandom& random,
                  const Tensor& x, const Tensor& y, const Tensor& index, const Tensor& mask);

// dx is overwritten. Only stochastic_test reads x; max and stochastic read index.
void pool_backward(Context& context, const PoolWindow& window, const Tensor& x, const Tensor& index,
                   const Tensor& dy, const Tensor& dx);

}  // namespace crema

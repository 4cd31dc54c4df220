// Local response normalization: divides by a power of the sum of squares in a neighborhood.
//   y = x * s^-beta    s = k + alpha * (sum of x^2 over the neighborhood; 0 outside)
//   dx = dy * s^-beta - 2 * alpha * beta * x * (sum over it of dy * x * s^(-beta - 1))
// The neighborhood is `size` channels at one position, or size x size positions of one channel.
// Tensors are all NCHW or all channels-last.
#pragma once

#include "tensor/tensor.h"

namespace crema {

struct LrnWindow {
  bool across_channels = true;
  int64_t size = 5;  // odd
  double alpha = 1;  // of the sum itself: the prototxt's alpha divided by the number of summands
  double beta = 0.75;
  double k = 1;
};

// x: at least two axes; four for within channels.
void lrn_forward(Context& context, const LrnWindow& window, const Tensor& x, const Tensor& y);

// Bytes of workspace for lrn_backward.
size_t lrn_workspace(Context& context, const LrnWindow& window, const Shape& x, DType dtype);
void lrn_backward(Context& context, const LrnWindow& window, const Tensor& x, const Tensor& dy,
                  const Tensor& dx, const Tensor& workspace);

}  // namespace crema

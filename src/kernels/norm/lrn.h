// Local response normalization: divides by a power of the sum of squares in a neighbourhood.
//   y = x * s^-beta    s = k + alpha * (sum of x^2 over the neighbourhood; 0 outside)
//   dx = dy * s^-beta - 2 * alpha * beta * x * (sum over it of dy * x * s^(-beta - 1))
// The neighbourhood is `size` channels at one place, or size x size places of one channel. Tensors
// lie plain or channels-last, all alike.
#pragma once

#include "tensor/tensor.h"

namespace crema {

struct LrnWindow {
  bool across_channels = true;
  int64_t size = 5;  // odd
  double alpha = 1;  // of the plain sum: what a net's file says over the number of summands
  double beta = 0.75;
  double k = 1;
};

// x: at least two axes; four within channels.
void lrn_forward(Context& context, const LrnWindow& window, const Tensor& x, const Tensor& y);

// Bytes that lrn_backward scribbles on.
size_t lrn_workspace(Context& context, const LrnWindow& window, const Shape& x, DType dtype);
void lrn_backward(Context& context, const LrnWindow& window, const Tensor& x, const Tensor& dy,
                  const Tensor& dx, const Tensor& workspace);

}  // namespace crema

// Images in another size, by linear interpolation along both axes; the first and the last row and
// column stay what they are (what other programs call align_corners).
//   y[h] = (1 - l) * x[i] + l * x[i + 1]   with i + l = h * (H - 1) / (H' - 1), and so for columns
// Shapes: x (N, C, H, W), y (N, C, H', W'); plain or channels-last, both alike.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// The part of x that counts: without so many rows and columns before and behind it.
struct InterpolationCut {
  int64_t before = 0, behind = 0;
};

void interpolate(Context& context, const InterpolationCut& cut, const Tensor& x, const Tensor& y);
// dx is overwritten.
void interpolate_gradient(Context& context, const InterpolationCut& cut, const Tensor& dy,
                          const Tensor& dx);

}  // namespace crema

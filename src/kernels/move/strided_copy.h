// Strided copies: the common part of cropping, tiling, flipping, permuting and repeating. The
// gradient is the same copy with source and destination exchanged.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace crema {

// The strides of the axis in each tensor, in elements; they may be negative.
struct MovedAxis {
  int64_t extent = 1, to = 0, from = 0;
};

// For all indices i below the extents
//   y[to_start + sum of i * to] = factor * sum of x[from_start + sum of i * from],
// where the sum on the right is over the axes with to = 0. No two other indices may have the same
// destination. Elements that are no destination keep their values.
struct StridedCopy {
  std::vector<MovedAxis> axes;
  int64_t to_start = 0, from_start = 0;
  float factor = 1;

  // The number of elements of y that are written.
  int64_t written_count() const;
  // Its gradient: from dy to dx.
  StridedCopy reversed() const;
};

// x and y have the same dtype and do not overlap. After adjacent axes have been merged there are at
// most 6 axes, at most 2 of them with to = 0.
void strided_copy(Context& context, const StridedCopy& moves, const Tensor& x, const Tensor& y);

// The stride of each of the tensor's axes in memory, in elements.
std::vector<int64_t> steps_of(const Tensor& tensor);

}  // namespace crema

// Values moved to other places: what cropping, tiling, flipping, permuting and repeating have in
// common. The way back of a gradient is the same with source and goal exchanged.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace crema {

// One step along the axis moves this far in each tensor, in elements; it may be negative.
struct MovedAxis {
  int64_t extent = 1, to = 0, from = 0;
};

// For all indexes i that do not exceed the extents
//   y[to_start + sum of i * to] = factor * sum of x[from_start + sum of i * from],
// where the sum is over the axes with to = 0. No other two indexes may have the same goal. What is
// not a goal keeps its value.
struct Rearrangement {
  std::vector<MovedAxis> axes;
  int64_t to_start = 0, from_start = 0;
  float factor = 1;

  // Elements of y that are written.
  int64_t goals() const;
  // Its gradient: from dy to dx.
  Rearrangement reversed() const;
};

// x and y have the same dtype and do not overlap. At most 6 axes after neighbours that move as one
// have been joined, at most 2 of them with to = 0.
void rearrange(Context& context, const Rearrangement& moves, const Tensor& x, const Tensor& y);

// How far a step along each of the tensor's axes goes in memory, in elements.
std::vector<int64_t> steps_of(const Tensor& tensor);

}  // namespace crema

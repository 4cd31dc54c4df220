// The implementations of strided_copy(), and the form in which they get the moves.
#pragma once

#include "kernels/core/kernel_registry.h"
#include "kernels/move/strided_copy.h"

namespace crema {

// A StridedCopy without axes of extent 1; mergeable axes are merged, and the longest strides (in y;
// of sums, in x) come first.
struct SortedMoves {
  std::vector<MovedAxis> kept, sums;
  int64_t to_start = 0, from_start = 0;
  float factor = 1;

  explicit SortedMoves(const StridedCopy& moves);
};

extern KernelFunctions<const SortedMoves&, const Tensor&, const Tensor&> strided_copy_kernels;

}  // namespace crema

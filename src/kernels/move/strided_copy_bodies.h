// The implementations of strided_copy(): see kernels/core/implementation.h.
#pragma once

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

bool strided_copy_cpu(Context& context, const SortedMoves& moves, const Tensor& x, const Tensor& y);
bool strided_copy_gpu(Context& context, const SortedMoves& moves, const Tensor& x, const Tensor& y);

}  // namespace crema

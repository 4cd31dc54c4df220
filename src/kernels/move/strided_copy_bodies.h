// What lies behind rearrange().
#pragma once

#include "kernels/move/strided_copy.h"

namespace crema {

// A Rearrangement without axes of one entry; neighbours that move as one are joined, and the
// longest steps (in y, of sums in x) come first.
struct SortedMoves {
  std::vector<MovedAxis> kept, sums;
  int64_t to_start = 0, from_start = 0;
  float factor = 1;

  explicit SortedMoves(const Rearrangement& moves);
};

void rearrange_cpu(SortedMoves moves, const Tensor& x, const Tensor& y);

// GPU: false, with nothing done, for what the body for any dtype and axes has to do.
bool rearrange_gpu(Context& context, const SortedMoves& moves, const Tensor& x, const Tensor& y);

}  // namespace crema

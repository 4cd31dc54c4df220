// Parts of a tensor along one axis: what Concat and Slice copy.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// Copies `extent` entries of `axis`, from entry `from_begin` of `from` on, to entry `to_begin` of
// `to` on. Both tensors have the same order (plain or channels_last), dtype and, on the other axes,
// extents.
void copy_part(Context& context, int axis, int64_t extent, const Tensor& from, int64_t from_begin,
               const Tensor& to, int64_t to_begin);
// Writes zeros to `extent` entries of `axis`, from entry `begin` on.
void zero_part(Context& context, int axis, int64_t extent, const Tensor& to, int64_t begin);

}  // namespace crema

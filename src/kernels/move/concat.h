// Concatenation along an axis, and its inverse: the copies of Concat and Slice. All tensors have
// the same layout (NCHW or channels-last), dtype and, on the other axes, extents.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace crema {

// whole = [pieces...]. extents: of the pieces along the axis; an empty piece fills its part with
// zeros.
void concat_pieces(Context& context, int axis, const std::vector<int64_t>& extents,
                   const std::vector<Tensor>& pieces, const Tensor& whole);

// [pieces...] = the sum of `wholes`; an empty piece is not wanted.
void split_pieces(Context& context, int axis, const std::vector<int64_t>& extents,
                  const std::vector<Tensor>& wholes, const std::vector<Tensor>& pieces);

// How many wholes of `count` elements split_pieces() can add in one pass.
int max_fused_wholes(Context& context, int64_t count);

}  // namespace crema

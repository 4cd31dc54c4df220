// Tensors one after another along an axis: what Concat and Slice copy. All tensors have the same
// order (plain or channels-last), dtype and, on the other axes, extents.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace crema {

// whole = [pieces...]. extents: of the pieces along the axis; where a piece is empty the whole gets
// zeros.
void join_pieces(Context& context, int axis, const std::vector<int64_t>& extents,
                 const std::vector<Tensor>& pieces, const Tensor& whole);

// [pieces...] = the sum of `wholes`; where a piece is empty it is not wanted.
void cut_pieces(Context& context, int axis, const std::vector<int64_t>& extents,
                const std::vector<Tensor>& wholes, const std::vector<Tensor>& pieces);

// How many wholes of `count` elements can be added up while they are cut.
int wholes_at_once(Context& context, int64_t count);

}  // namespace crema

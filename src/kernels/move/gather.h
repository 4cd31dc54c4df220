// Gathers entries along an axis by index, with repetition; the gradient is summed for each entry in
// the order of the indices.
//   y[o, j, i] = x[o, index[j], i]
// Shapes: x (outer, entries, inner), index (picks) with integers from 0 to entries - 1 (fractions
// are cut off), y (outer, picks, inner); index is float64 where x is, else float32. An index out of
// range is an Error on the CPU; on a GPU it gives NaN and no gradient.
#pragma once

#include "tensor/tensor.h"

namespace crema {

struct GatherExtent {
  int64_t outer = 1, entries = 0, picks = 0, inner = 1;

  // Scratch for the gradient, in int32 elements.
  int64_t scratch() const { return entries + picks; }
};

void gather(Context& context, const GatherExtent& extent, const Tensor& x, const Tensor& index,
            const Tensor& y);
void gather_gradient(Context& context, const GatherExtent& extent, const Tensor& index,
                     const Tensor& dy, const Tensor& scratch, const Tensor& dx);

}  // namespace crema

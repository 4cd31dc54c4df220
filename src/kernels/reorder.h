// Moves a tensor from one format (order, blocks) to another.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// The same shape and dtype on the context's device, any formats; the tensors do not overlap.
// Padding of a blocked goal is set to zero.
void reorder(Context& context, const Tensor& from, const Tensor& to);

}  // namespace crema

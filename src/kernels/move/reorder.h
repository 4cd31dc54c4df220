// Moves a tensor from one format (order, blocks) to another.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// The same shape on the context's device, any formats; the tensors do not overlap. The same dtype,
// or any two of float32, float16, bfloat16 in plain and channels-last order on a GPU. Padding of a
// blocked goal is set to zero.
void reorder(Context& context, const Tensor& from, const Tensor& to);

}  // namespace crema

// Converts a tensor from one format (order, blocks) to another.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// The same shape on the context's device, any formats; the tensors do not overlap. The same dtype
// or, on a GPU in row-major and channels-last order, any two of float32, float16, bfloat16. The
// padding of a blocked destination is set to zero.
void reorder(Context& context, const Tensor& from, const Tensor& to);

}  // namespace crema

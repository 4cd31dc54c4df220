// Keeps chosen weights at 0, for pruning.
#pragma once

#include "device/context.h"
#include "tensor/tensor.h"

namespace crema {

// Sets to 0 the elements of `values` where `mask` is 0. As many elements in memory; mask is float64 where values
// are, otherwise float32.
void keep_zeros(Context& context, const Tensor& mask, const Tensor& values);

}  // namespace crema

// Keeps chosen weights at 0, for pruning.
#pragma once

#include "device/context.h"
#include "tensor/tensor.h"

namespace crema {

// mask = 0 where `values` is 0, elsewhere 1; without values 1 everywhere. As many elements in memory; mask is u8.
void make_mask(Context& context, const Tensor& values, const Tensor& mask);

// Sets to 0 the elements of `values` where `mask`, which is u8, is 0. As many elements in memory.
void keep_zeros(Context& context, const Tensor& mask, const Tensor& values);

}  // namespace crema

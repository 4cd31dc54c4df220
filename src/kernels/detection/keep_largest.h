// Weights of what costs most: those of all other places become 0.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// kept[i] = weights[i] where values[i] is at least the k-th largest of all, else 0; k from 1 on.
// All of one length and dtype. rank: one i32, which is overwritten.
void keep_largest(Context& context, const Tensor& values, int64_t k, const Tensor& weights,
                  const Tensor& kept, const Tensor& rank);

}  // namespace crema

// Hard example selection: keeps the weights of the elements with the largest values and sets all
// others to 0.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// kept[i] = weights[i] where values[i] is at least the k-th largest value, else 0; k >= 1. All have
// the same length and dtype. rank: one i32, which is overwritten.
void keep_largest(Context& context, const Tensor& values, int64_t k, const Tensor& weights,
                  const Tensor& kept, const Tensor& rank);

}  // namespace crema

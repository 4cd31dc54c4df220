// Hard example selection: keeps the weights of the elements with the largest values and sets all
// others to 0.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// kept[i] = weights[i] where values[i] is at least the k-th largest value, else 0; k >= 1. All have
// the same length and dtype; float64 values are compared in float32, so that more than k may be
// kept. kth_key: one i32, which is overwritten.
void keep_largest(Context& context, const Tensor& values, int64_t k, const Tensor& weights,
                  const Tensor& kept, const Tensor& kth_key);

}  // namespace crema

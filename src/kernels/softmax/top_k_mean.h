// The mean of the k largest values along an axis, and its gradient. Shapes: x (outer, count,
// inner), y (outer, inner). kept: u8 like x, 1 for the values that count; of equal values the
// earlier is kept.
#pragma once

#include "tensor/tensor.h"

namespace crema {

struct TopKMean {
  int64_t outer = 1, count = 1, inner = 1;
  int64_t k = 1;     // at most `count`
  float factor = 1;  // applied to the mean
};

void top_k_mean(Context& context, const TopKMean& mean, const Tensor& x, const Tensor& kept,
                const Tensor& y);
void top_k_mean_gradient(Context& context, const TopKMean& mean, const Tensor& dy,
                         const Tensor& kept, const Tensor& dx);

}  // namespace crema

// The middle of attention, from the scores of keys to the weights of values, and its gradient:
//   P = softmax(S) over the keys;  D = P * mask / (1 - ratio), mask 0 with probability `ratio`
// Rows are queries, in groups of `queries` (one head of one image); causal: keys after the query's
// position get weight 0. T: float, double, on a GPU also Half and BFloat16.
#pragma once

#include "device/context.h"
#include "tensor/tensor.h"

namespace crema {

struct AttentionRows {
  int64_t count = 0, queries = 1, keys = 0;
  bool causal = false;
  float ratio = 0;  // 0: D is P
  PassRandom random;
  int64_t first =
      0;  // rows of the batch before these: the random numbers of these come after theirs
};

// weights: S, overwritten with P. dropped: D, null where it equals P.
template <typename T>
void attention_weights(Context& context, const AttentionRows& rows, T* weights, T* dropped);

// gradient: of D, overwritten with that of S.
template <typename T>
void attention_gradient(Context& context, const AttentionRows& rows, const T* weights, T* gradient);

}  // namespace crema

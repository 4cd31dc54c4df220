// The middle of attention: from the scores of keys to the weights of values, and back.
//   P = softmax(S) over the keys;  D = P * mask / (1 - ratio), mask 0 with probability `ratio`
// Rows are queries, of which `queries` belong together (a head of an image); causal: keys behind
// the query's place get no weight. T: float, double, on a GPU also Half and BFloat16.
#pragma once

#include "device/context.h"
#include "tensor/tensor.h"

namespace crema {

struct AttentionRows {
  int64_t count = 0, queries = 1, keys = 0;
  bool causal = false;
  float ratio = 0;  // 0: D is P
  PassRandom random;
};

// weights: S, becomes P. dropped: D, null where that is P.
template <typename T>
void attention_weights(Context& context, const AttentionRows& rows, T* weights, T* dropped);

// slopes: the gradient of D, becomes that of S.
template <typename T>
void attention_slopes(Context& context, const AttentionRows& rows, const T* weights, T* slopes);

}  // namespace crema

// Products of matrices in interleaved groups, such as the heads of attention: where a Gemm has one
// stride from batch to batch, these have a second one inside each batch.
#pragma once

#include "kernels/gemm/gemm.h"
#include "tensor/half.h"

namespace crema {

// `count` copies of each product of a Gemm, each operand advancing by its group stride.
struct GemmGroups {
  int64_t count = 1, group_stride_a = 0, group_stride_b = 0, group_stride_c = 0;
};

// T: float, double, on a GPU also Half and BFloat16; C: T or its Compute type. scratch: at least
// gemm_groups_scratch() bytes; none are needed for one group.
template <typename T, typename C>
void gemm_groups(Context& context, const Gemm& g, const GemmGroups& groups, const T* a, const T* b,
                 C* c, const Tensor& scratch);
inline size_t gemm_groups_scratch(int64_t batch, int64_t groups) {
  return 3 * sizeof(void*) * static_cast<size_t>(batch * groups);
}

}  // namespace crema

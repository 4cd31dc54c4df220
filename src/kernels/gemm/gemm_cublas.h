// Matrix products by cuBLAS, on a GPU only. T: float, double, Half or BFloat16; C: T or its Compute
// type. A Gemm has its lda, ldb and ldc filled in.
#pragma once

#include "kernels/gemm/gemm.h"

namespace crema {

template <typename T, typename C>
void gemm_cublas(Context& context, const Gemm& g, const T* a, const T* b, C* c);
// `count` products whose operands start at the addresses in arrays of pointers on the GPU; g's
// strides and batch are ignored.
template <typename T, typename C>
void gemm_pointers_cublas(Context& context, const Gemm& g, int64_t count, const T* const* a,
                          const T* const* b, C* const* c);

}  // namespace crema

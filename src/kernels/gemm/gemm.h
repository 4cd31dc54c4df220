// Products of row-major matrices: c = alpha * op(a) * op(b) + beta * c.
#pragma once

#include "tensor/precision.h"
#include "tensor/tensor.h"

namespace crema {

// op(a) is m x k, op(b) is k x n, c is m x n; a is stored k x m when transposed, b n x k. Pointers
// are on the context's device. T: float or double. With beta = 0 c is not read.
struct Gemm {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  float alpha = 1, beta = 0;
  // `batch` products, each operand advancing by its stride.
  int64_t batch = 1, batch_stride_a = 0, batch_stride_b = 0, batch_stride_c = 0;
  // Leading dimensions: from a stored row to the next, in elements; 0: contiguous rows.
  int64_t lda = 0, ldb = 0, ldc = 0;
  // Other than fp32: on a GPU the operands of float products may be rounded to tf32.
  Precision precision = Precision::fp32;
};

// On the CPU it uses all threads, or one when called inside a parallel region.
template <typename T>
void gemm(Context& context, const Gemm& g, const T* a, const T* b, T* c);

}  // namespace crema

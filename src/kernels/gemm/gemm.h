// Products of row-major matrices: c = alpha * op(a) * op(b) + beta * c.
#pragma once

#include "tensor/precision.h"
#include "tensor/tensor.h"

namespace crema {

// op(a) is m x k, op(b) is k x n, c is m x n; a is stored k x m when transposed, b n x k. Pointers
// are on the context's device. T: float or double. `batch` products, each operand advancing by its
// stride. With beta = 0 c is not read.
struct Gemm {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  float alpha = 1, beta = 0;
  int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
  int64_t row_a = 0, row_b = 0,
          row_c = 0;  // leading dimensions in elements; 0: contiguous rows
  // Other than fp32: on a GPU the operands of float products may be rounded to tf32.
  Precision precision = Precision::fp32;
};

// On the CPU: oneDNN ("onednn", float), else our own kernels ("plain"); on the GPU: "cublas", else
// "plain". Uses all threads, or one when called inside a parallel region.
template <typename T>
void gemm(Context& context, const Gemm& g, const T* a, const T* b, T* c);

}  // namespace crema

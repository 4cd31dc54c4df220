// The implementations behind gemm(): each takes a Gemm whose lda, ldb and ldc are filled in.
#pragma once

#include "kernels/gemm/gemm.h"

namespace crema {

// CPU: our own, with packed panels and a register tile.
template <typename T>
void gemm_reference(const Gemm& g, const T* a, const T* b, T* c);
// CPU: op(b) is transposed and a has few rows: b is read once, nothing is packed.
bool suits_few_rows(const Gemm& g);
template <typename T>
void gemm_few_rows(const Gemm& g, const T* a, const T* b, T* c);
// CPU, float. False, having done nothing, for sizes that it does not support.
bool gemm_onednn(const Gemm& g, const float* a, const float* b, float* c);
// GPU: one thread per element of c.
template <typename T>
void gemm_elements(Context& context, const Gemm& g, const T* a, const T* b, T* c);
// GPU: cuBLAS. T: float, double, Half or BFloat16; C: T or its Compute type.
template <typename T, typename C>
void gemm_cublas(Context& context, const Gemm& g, const T* a, const T* b, C* c);
// GPU: `count` products by cuBLAS whose operands start at the addresses in arrays of pointers on
// the GPU; g's strides and batch are ignored.
template <typename T, typename C>
void gemm_pointers_cublas(Context& context, const Gemm& g, int64_t count, const T* const* a,
                          const T* const* b, C* const* c);
// Fills in lda, ldb and ldc where they are 0.
inline Gemm with_leading_dimensions(Gemm g) {
  if (g.lda == 0) g.lda = g.transpose_a ? g.m : g.k;
  if (g.ldb == 0) g.ldb = g.transpose_b ? g.k : g.n;
  if (g.ldc == 0) g.ldc = g.n;
  return g;
}

}  // namespace crema

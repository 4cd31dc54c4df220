// The bodies behind gemm(): each takes a Gemm whose row_a, row_b and row_c are filled in.
#pragma once

#include "kernels/gemm/gemm.h"

namespace crema {

// CPU: packed panels and a register tile of our own.
template <typename T>
void gemm_plain(const Gemm& g, const T* a, const T* b, T* c);
// CPU: op(b) is given transposed and there are few rows of a: b is read once, nothing is packed.
bool suits_few_rows(const Gemm& g);
template <typename T>
void gemm_few_rows(const Gemm& g, const T* a, const T* b, T* c);
// CPU, float. False, and nothing done, for sizes that it does not take.
bool gemm_onednn(const Gemm& g, const float* a, const float* b, float* c);
// GPU: one element of c for each index.
template <typename T>
void gemm_elements(Context& context, const Gemm& g, const T* a, const T* b, T* c);
// GPU: cuBLAS. T: float, double, Half or BFloat16; C: T or its Compute type.
template <typename T, typename C>
void gemm_cublas(Context& context, const Gemm& g, const T* a, const T* b, C* c);
// GPU: `count` products by cuBLAS whose operands begin where pointers on the GPU say; strides and
// batch of g have no meaning.
template <typename T, typename C>
void gemm_pointers_cublas(Context& context, const Gemm& g, int64_t count, const T* const* a,
                          const T* const* b, C* const* c);
// row_a, row_b and row_c where they are 0.
inline Gemm with_rows(Gemm g) {
  if (g.row_a == 0) g.row_a = g.transpose_a ? g.m : g.k;
  if (g.row_b == 0) g.row_b = g.transpose_b ? g.k : g.n;
  if (g.row_c == 0) g.row_c = g.n;
  return g;
}

}  // namespace crema

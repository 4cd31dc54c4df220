// The bodies behind gemm(): each takes a Gemm whose row_a, row_b and row_c are filled in.
#pragma once

#include "kernels/gemm.h"

namespace crema {

// CPU: packed panels and a register tile of our own.
template <typename T>
void gemm_plain(const Gemm& g, const T* a, const T* b, T* c);
// CPU: op(b) is given transposed and there are few rows of a: b is read once, nothing is packed.
bool suits_few_rows(const Gemm& g);
template <typename T>
void gemm_few_rows(const Gemm& g, const T* a, const T* b, T* c);
// CPU, float.
void gemm_onednn(const Gemm& g, const float* a, const float* b, float* c);
// GPU: one element of c for each index.
template <typename T>
void gemm_elements(Context& context, const Gemm& g, const T* a, const T* b, T* c);
// GPU: cuBLAS without TF32.
template <typename T>
void gemm_cublas(Context& context, const Gemm& g, const T* a, const T* b, T* c);

}  // namespace crema

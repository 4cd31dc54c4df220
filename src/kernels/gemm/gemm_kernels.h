// The implementations of gemm() and gemm_groups(), which get a Gemm whose lda, ldb and ldc are filled
// in.
#pragma once

#include <type_traits>

#include "kernels/core/kernel_registry.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_groups.h"

namespace crema {

// For products that are not empty; k may be 0.
template <typename T>
inline constinit KernelFunctions<const Gemm&, const T*, const T*, T*> gemm_kernels(
    "the matrix product");

template <typename T, typename C>
inline constinit KernelFunctions<const Gemm&, const GemmGroups&, const T*, const T*, C*,
                                 const Tensor&>
    gemm_groups_kernels("grouped matrix products",
                        std::is_same_v<T, Compute<T>> ? nullptr : "16 bits exist on GPUs only");

// Fills in lda, ldb and ldc where they are 0.
inline Gemm with_leading_dimensions(Gemm g) {
  if (g.lda == 0) g.lda = g.transpose_a ? g.m : g.k;
  if (g.ldb == 0) g.ldb = g.transpose_b ? g.k : g.n;
  if (g.ldc == 0) g.ldc = g.n;
  return g;
}

}  // namespace crema

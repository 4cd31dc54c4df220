// Tensor-core instructions on 16-bit operands with float accumulation, and their operand loads:
// asynchronous copies to shared memory and matrix loads from there (PTX ISA: mma, ldmatrix,
// cp.async). Compute capability 8.0 and newer. Only for .cu files of a CUDA build.
#pragma once

#include <cstdint>

#include "tensor/half.h"

namespace crema {

#ifdef __CUDACC__

// The address that the instructions below take, of something in shared memory.
__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Copies kBytes (4, 8 or 16) from global to shared memory or, when not `wanted`, writes as many
// zeros there.
template <int kBytes>
__device__ void copy_async(uint32_t to, const void* from, bool wanted) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes),
               "r"(wanted ? kBytes : 0));
}
// Copies 16 bytes bypassing L1, or writes zeros if `bit` is 0. In assembly, to get a predicated
// instruction; a size selected beforehand does not give one.
__device__ inline void copy_octet(uint32_t to, const void* from, uint32_t bit) {
  asm volatile(
      "{\n.reg .pred wanted;\n.reg .b32 size;\nsetp.ne.b32 wanted, %2, 0;\n"
      "selp.b32 size, 16, 0, wanted;\ncp.async.cg.shared.global [%0], [%1], 16, size;\n}" ::"r"(to),
      "l"(from), "r"(bit));
}
// Ends a group of copies; wait_for_copies() waits until at most kLeft groups of this thread are in
// flight.
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;"); }
template <int kLeft>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// Calls body<vector>(); vector: 2, 4 or 8.
template <typename Body>
__device__ void with_vector(int vector, const Body& body) {
  if (vector == 8) {
    body.template operator()<8>();
  } else if (vector == 4) {
    body.template operator()<4>();
  } else {
    body.template operator()<2>();
  }
}

// Loads four 8 x 8 matrices; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void load_matrices(uint32_t (&to)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}
// The same, each matrix transposed.
__device__ inline void load_transposed(uint32_t (&to)[4], uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}

// sums (16 x 8) += a (16 x 16) b (16 x 8).
template <typename T>
__device__ void multiply_add(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<T, Half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// sums (16 x 8) += a (16 x 8) b (8 x 8).
template <typename T>
__device__ void multiply_add(float (&sums)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  if constexpr (std::is_same_v<T, Half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a0), "r"(a1), "r"(b));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a0), "r"(a1), "r"(b));
  }
}

// sums (16 x 8) += a (16 x 32) b (32 x 8), of bytes: b has signs, a if kSigned. Rows of 16 bytes take the
// place of rows of 8 16-bit numbers in load_matrices().
template <bool kSigned>
__device__ void multiply_add_bytes(int (&sums)[4], const uint32_t (&a)[4], uint32_t b0,
                                   uint32_t b1) {
  if constexpr (kSigned) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

// Two values rounded to T, the first in the lower half. kRelu: negative values become zero.
template <typename T, bool kRelu>
__device__ uint32_t rounded_pair(float first, float second) {
  uint32_t pair;
  if constexpr (std::is_same_v<T, Half> && kRelu) {
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  } else if constexpr (std::is_same_v<T, Half>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  } else if constexpr (kRelu) {
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  }
  return pair;
}

// The two values of `pair` where those of `sign` are positive, else zeros. 16-bit floating-point
// values, NaN apart, compare with zero as their bits do as signed integers.
__device__ inline uint32_t where_positive(uint32_t pair, uint32_t sign) {
  return pair & __vcmpgts2(sign, 0);
}

#endif

}  // namespace crema

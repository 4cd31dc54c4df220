// The sums of the kernels of tf32_gemm.h, in registers. Only for .cu files of a CUDA build.
#pragma once

#include "kernels/conv/implicit_gemm/gemm_loads.cuh"

namespace crema {

#ifdef __CUDACC__

constexpr int kTf32Depth = 32, kTf32Stages = 3;

__device__ inline uint32_t rounded_to_tf32(float value) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

// A block's sums, in the registers of its threads (PTX ISA: mma.m16n8k8, .tf32).
template <typename Tile>
struct Tf32Sums {
  static constexpr int kM = Tile::m / Tile::warps_m / 16, kN = Tile::n / Tile::warps_n / 8;
  float sums[kM][kN][4] = {};

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int first_row() {
    return static_cast<int>(threadIdx.x) / 32 % Tile::warps_m * kM * 16 + lane() / 4;
  }
  __device__ static int first_column() {
    return static_cast<int>(threadIdx.x) / 32 / Tile::warps_m * kN * 8;
  }
  template <typename A, typename B>
  __device__ void add(const float* a, const float* b) {
    const int row = first_row(), column = first_column() + lane() / 4;
#pragma unroll
    for (int step = 0; step < kTf32Depth; step += 8) {
      const int k = step + lane() % 4;
      uint32_t left[kM][4], right[kN][2];
#pragma unroll
      for (int i = 0; i < kM; ++i) {
#pragma unroll
        for (int part = 0; part < 4; ++part)
          left[i][part] = rounded_to_tf32(A::at(a, row + i * 16 + part % 2 * 8, k + part / 2 * 4));
      }
#pragma unroll
      for (int j = 0; j < kN; ++j) {
#pragma unroll
        for (int part = 0; part < 2; ++part)
          right[j][part] = rounded_to_tf32(B::at(b, column + j * 8, k + part * 4));
      }
#pragma unroll
      for (int i = 0; i < kM; ++i) {
#pragma unroll
        for (int j = 0; j < kN; ++j) {
          float(&to)[4] = sums[i][j];
          asm volatile(
              "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
              "{%8,%9}, {%0,%1,%2,%3};"
              : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
              : "r"(left[i][0]), "r"(left[i][1]), "r"(left[i][2]), "r"(left[i][3]),
                "r"(right[j][0]), "r"(right[j][1]));
        }
      }
    }
  }
  // body(row, column, sum) for each.
  template <typename Body>
  __device__ void each(const Body& body) const {
    const int row = first_row(), column = first_column() + lane() % 4 * 2;
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int j = 0; j < kN; ++j) {
#pragma unroll
        for (int part = 0; part < 4; ++part)
          body(row + i * 16 + part / 2 * 8, column + j * 8 + part % 2, sums[i][j][part]);
      }
    }
  }
};

#endif

}  // namespace crema

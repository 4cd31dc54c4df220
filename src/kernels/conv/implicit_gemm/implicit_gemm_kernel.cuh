// The kernel of implicit_gemm.h. A block computes kM x kN results in steps of 32 along the
// reduction, through a ring of tiles in shared memory. If there are few blocks, the reduction is
// divided into pieces (split-K).
#pragma once

#include <algorithm>

#include "device/programmatic_launch.h"
#include "kernels/conv/implicit_gemm/small_gemm.cuh"

namespace crema {

// Stores two results of a row: of an even column and of the next.
template <typename T, ConvCall kCall>
struct PairStore {
  const ImplicitGemmParams& n;
  int group;
  const uint32_t* bias;  // pairs, from column `bias_from` on; null: none
  int bias_from;
  Random random;

  __device__ void operator()(int row, int column, float first, float second) const {
    if (row >= n.geometry.rows || column >= n.geometry.columns) return;
    if constexpr (kCall == ConvCall::fprop) finish(row, column, first, second);
    first *= n.operands.factor;
    second *= n.operands.factor;
    if constexpr (kCall == ConvCall::wgrad) {
      if (n.operands.db && column == n.geometry.columns - 1) {
        float* const db = n.operands.db + group * n.geometry.bias_group + row;
        *db = n.operands.accumulate_b ? *db + first : first;
        return;
      }
      float2* const dw = reinterpret_cast<float2*>(static_cast<float*>(n.operands.out) +
                                                   group * n.geometry.out_group +
                                                   row * n.geometry.out_pixel + column);
      const float2 before = n.operands.accumulate_w ? *dw : make_float2(0, 0);
      *dw = make_float2(before.x + first, before.y + second);
    } else {
      T pair[2] = {first, second};
      T* const to = static_cast<T*>(n.operands.out) + offset(row, column);
      *reinterpret_cast<uint32_t*>(to) = pair[0].bits | static_cast<uint32_t>(pair[1].bits) << 16;
    }
  }

 private:
  __device__ int64_t offset(int row, int column) const {
    return group * n.geometry.out_group + static_cast<int64_t>(row) * n.geometry.out_pixel + column;
  }
  __device__ static void add_pair(uint32_t pair, float& first, float& second) {
    T values[2];
    values[0].bits = static_cast<uint16_t>(pair),
    values[1].bits = static_cast<uint16_t>(pair >> 16);
    first += static_cast<float>(values[0]);
    second += static_cast<float>(values[1]);
  }
  __device__ void finish(int row, int column, float& first, float& second) const {
    if (bias) add_pair(bias[(column - bias_from) / 2], first, second);
    if (n.operands.added) {
      const T* const from = static_cast<const T*>(n.operands.added) + offset(row, column);
      add_pair(*reinterpret_cast<const uint32_t*>(from), first, second);
    }
    if (n.operands.relu) {
      first = first <= 0 ? 0 : first;  // a NaN stays
      second = second <= 0 ? 0 : second;
    }
    if (n.operands.dropout.threshold > 0) {
      const int64_t at = static_cast<int64_t>(row) * n.geometry.out_pixel + column;
      if (!n.operands.dropout.keeps(random, n.operands.dropout_layout, 0, at, 0)) first = 0;
      if (!n.operands.dropout.keeps(random, n.operands.dropout_layout, 0, at + 1, 0)) second = 0;
    }
  }
};

// Reduces a block's results over all pieces and stores them. Each block of a cluster finishes some
// rows: the other blocks, and each of its own warps_k, write theirs to its shared memory. Clusters
// write their sums to global memory, where the last one adds them up. The order is always that of
// the pieces. slots: not in use by any block of the cluster. part: index among warps_k.
template <typename Shape, int kM, int kN, typename Store>
__device__ void finish_pieces(const ImplicitGemmParams& n, const float (&sums)[kM][kN][4],
                              float* slots, int piece, int warp_row, int warp_column, int part,
                              const Store& store) {
  constexpr int kPitch = Shape::n + 4, kPairs = Shape::n / 2;
  const int lane = static_cast<int>(threadIdx.x) % 32, cluster = 1 << n.split.cluster_bits;
  const int rank = piece & (cluster - 1), rows = Shape::m >> n.split.cluster_bits;
  const int outer = n.split.pieces >> n.split.cluster_bits,
            outer_piece = piece >> n.split.cluster_bits;
  const int from = rank * Shape::warps_k + part;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_row + i * 16 + half * 8 + lane / 4;
      const int owner = (row << n.split.cluster_bits) / Shape::m;
      float* const to = of_cluster(slots, owner) + ((from - owner) * rows + row) * kPitch +
                        warp_column + lane % 4 * 2;
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        *reinterpret_cast<float2*>(to + j * 8) =
            make_float2(sums[i][j][half * 2], sums[i][j][half * 2 + 1]);
      }
    }
  }
  cluster_barrier();
  const int at =
      static_cast<int>((store.group * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * cluster +
      rank;  // index of these rows among those of all blocks
  float2* const parts = reinterpret_cast<float2*>(n.operands.partial_sums) +
                        static_cast<int64_t>(at) * outer * rows * kPairs;
  const auto store_at = [&](int pair, const float2& sum) {
    store(static_cast<int>(blockIdx.x) * Shape::m + rank * rows + pair / kPairs,
          static_cast<int>(blockIdx.y) * Shape::n + pair % kPairs * 2, sum.x, sum.y);
  };
  for (int pair = static_cast<int>(threadIdx.x); pair < rows * kPairs; pair += Shape::threads) {
    const float* const first = slots + pair / kPairs * kPitch + pair % kPairs * 2;
    float2 total = make_float2(0, 0);
#pragma unroll 8
    for (int other = 0; other < cluster * Shape::warps_k; ++other)
      add_to(total, *reinterpret_cast<const float2*>(first + other * rows * kPitch));
    if (outer == 1) {
      store_at(pair, total);
    } else {
      parts[outer_piece * rows * kPairs + pair] = total;
    }
  }
  if (outer > 1 && last_of(n.operands.counters + at, outer)) {
    for (int pair = static_cast<int>(threadIdx.x); pair < rows * kPairs; pair += Shape::threads) {
      float2 total = make_float2(0, 0);
#pragma unroll 8
      for (int other = 0; other < outer; ++other)
        add_to(total, __ldcg(parts + other * rows * kPairs + pair));
      store_at(pair, total);
    }
  }
}

// Adds the products of a warp's part of the tiles at `from`. part: index among warps_k.
template <typename T, typename Shape, ConvCall kCall, bool kReluMask, int kM, int kColumns>
__device__ __forceinline__ void multiply_tile(uint32_t from, int warp_row, int warp_column,
                                              int part, float (&sums)[kM][kColumns][4]) {
  using Layout = SharedLayout<Shape, kCall, kReluMask>;
  using A = typename Layout::A;
  using B = typename Layout::B;
  constexpr int kN = kColumns / 2;
#pragma unroll
  for (int k = 0; k < kTileDepth; k += 16 * Shape::warps_k) {
    const int depth = k + part * 16;
    uint32_t a[kM][4], b[kN][4];
#pragma unroll
    for (int i = 0; i < kM; ++i) {
      load_a<A, Layout::a_transposed>(a[i], from, warp_row + i * 16, depth);
      if constexpr (kReluMask) {
        uint32_t y[4];
        load_a<A, Layout::a_transposed>(y, from + Layout::relu_y_at, warp_row + i * 16, depth);
#pragma unroll
        for (int k = 0; k < 4; ++k) a[i][k] = where_positive(a[i][k], y[k]);
      }
    }
#pragma unroll
    for (int j = 0; j < kN; ++j)
      load_b<B, Layout::b_transposed>(b[j], from + Layout::b_at, warp_column + j * 16, depth);
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        multiply_add<T>(sums[i][2 * j], a[i], b[j][0], b[j][1]);
        multiply_add<T>(sums[i][2 * j + 1], a[i], b[j][2], b[j][3]);
      }
    }
  }
}

// For plain matrices: by default the compiler halves the registers and spills some. wgrad has many
// blocks of few steps.
template <typename Shape, ConvCall kCall>
constexpr int kBlocksAtOnce = !Shape::is_matrix_product                           ? 0
                              : kCall == ConvCall::wgrad && Shape::threads <= 256 ? 3
                                                                                  : 1;

template <typename T, typename Shape, ConvCall kCall, bool kReluMask>
__global__ void __launch_bounds__(Shape::threads, kBlocksAtOnce<Shape, kCall>)
    implicit_gemm(ImplicitGemmParams params) {
#if __CUDA_ARCH__ >= 800  // older cards lack these instructions: see has_async_mma()
  // A copy for registers: a parameter would be loaded again after each instruction in assembly that
  // may write memory.
  const ImplicitGemmParams n = params;
  using Layout = SharedLayout<Shape, kCall, kReluMask>;
  constexpr int kM = Shape::m / Shape::warps_m / 16, kN = Shape::n / Shape::warps_n / 16;
  constexpr bool kFprop = kCall == ConvCall::fprop;
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ uint32_t bias[kFprop ? Shape::n / 2 : 1];
  const uint32_t base = shared_address(memory);
  const int group = n.geometry.groups > 1 ? static_cast<int>(blockIdx.z) / n.split.pieces : 0;
  const int piece = static_cast<int>(blockIdx.z) - group * n.split.pieces;
  const int first_row = static_cast<int>(blockIdx.x) * Shape::m;
  const int first_column = static_cast<int>(blockIdx.y) * Shape::n;
  const int all_steps = (n.geometry.depth + kTileDepth - 1) / kTileDepth;
  const int begin = piece * n.split.steps_each,
            steps = max(0, min(n.split.steps_each, all_steps - begin));
  const bool shared_sums = n.split.pieces > 1 || Shape::warps_k > 1;
  if (Shape::is_matrix_product && shared_sums) arrive_at_cluster();
  const GroupOperands<T> of_group{
      static_cast<const T*>(n.operands.a) + group * n.geometry.a_group,
      kReluMask ? static_cast<const T*>(n.operands.relu_y) + group * n.geometry.a_group : nullptr,
      static_cast<const T*>(n.operands.b) + group * n.geometry.b_group};

  std::conditional_t<Shape::is_matrix_product, MatrixOperands<T, Shape, kCall, kReluMask>,
                     GatheredOperands<T, Shape, kCall, kReluMask>>
      operands;
  wait_for_earlier_kernels();
  operands.start(n, of_group, first_row, first_column, begin * kTileDepth);
  const int stage_steps = Shape::is_matrix_product ? n.stages.steps : 1;
  const auto after = [&](int slot) { return slot + 1 < kGatherStages ? slot + 1 : 0; };
  const auto position_of = [&](int slot) { return base + slot * stage_steps * Layout::stage; };
  int loaded = 0, load_slot = 0;
  const auto load_stage = [&] {
    const int count = min(stage_steps, steps - loaded);
    if (count > 0) {
      operands.load(n, of_group, first_row, first_column, (begin + loaded) * kTileDepth, count,
                    position_of(load_slot));
    }
    loaded += count;
    load_slot = after(load_slot);
    end_copies();
  };

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int part = warp / (Shape::warps_m * Shape::warps_n);
  const int warp_row = warp % Shape::warps_m * kM * 16,
            warp_column = warp / Shape::warps_m % Shape::warps_n * kN * 16;
  float sums[kM][kN * 2][4] = {};

  // The epilogue's operands are loaded with the first tiles.
  if (kFprop && n.operands.bias && threadIdx.x < Shape::n / 2) {
    const int column = first_column + static_cast<int>(threadIdx.x) * 2;
    const bool inside = column < n.geometry.columns;
    copy_async<4>(shared_address(bias + threadIdx.x),
                  static_cast<const T*>(n.operands.bias) + group * n.geometry.bias_group +
                      (inside ? column : 0),
                  inside);
  }
  // One loop includes the prologue that fills the pipeline: the loading code is long, and a copy of
  // it would have to be fetched from memory too.
  int slot = 0;
  Random random;
#pragma unroll 1
  for (int done = -(kGatherStages - 1) * stage_steps; done < steps; done += stage_steps) {
    if (done >= 0) {
      wait_for_copies<kGatherStages - 2>();
      __syncthreads();
    }
    load_stage();
    if (kFprop && done == -stage_steps && n.operands.dropout.threshold > 0)
      random = n.operands.dropout.random.get();  // it waits for memory, as the first product will
    if (done >= 0) {
      const uint32_t from = position_of(slot);
      const int here = min(stage_steps, steps - done);
#pragma unroll 2
      for (int i = 0; i < here; ++i)
        multiply_tile<T, Shape, kCall, kReluMask>(from + i * Layout::stage, warp_row, warp_column,
                                                  part, sums);
      slot = after(slot);
    }
  }
  if (steps == 0) wait_for_copies<0>();  // the bias
  let_next_kernel_start();
  const PairStore<T, kCall> store{n, group, kFprop && n.operands.bias ? bias : nullptr,
                                  first_column, random};
  if (shared_sums) {
    // For windows, the sums reuse the memory of the ring of tiles, which has been read by then.
    if (Shape::is_matrix_product) {
      wait_for_cluster();
    } else {
      cluster_barrier();
    }
    return finish_pieces<Shape>(n, sums, reinterpret_cast<float*>(memory + n.stages.slots_at),
                                piece, warp_row, warp_column, part, store);
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int j = 0; j < kN * 2; ++j) {
      const int row = first_row + warp_row + i * 16 + lane / 4;
      const int column = first_column + warp_column + j * 8 + lane % 4 * 2;
      store(row, column, sums[i][j][0], sums[i][j][1]);
      store(row + 8, column, sums[i][j][2], sums[i][j][3]);
    }
  }
#endif
}

template <typename Shape>
constexpr int kSlotBytes = Shape::warps_k* Shape::m*(Shape::n + 4) * 4;

// Calls body<T, kCall, kReluMask>().
template <typename Body>
void with_call(ConvCall call, bool relu_mask, DType dtype, const Body& body) {
  const auto of_type = [&]<typename T>() {
    switch (call) {
      case ConvCall::fprop:
        return body.template operator()<T, ConvCall::fprop, false>();
      case ConvCall::dgrad:
        return relu_mask ? body.template operator()<T, ConvCall::dgrad, true>()
                         : body.template operator()<T, ConvCall::dgrad, false>();
      case ConvCall::wgrad:
        return relu_mask ? body.template operator()<T, ConvCall::wgrad, true>()
                         : body.template operator()<T, ConvCall::wgrad, false>();
      case ConvCall::both_gradients:
        break;  // these kernels compute one
    }
  };
  if (dtype == DType::f16) {
    of_type.template operator()<Half>();
  } else {
    of_type.template operator()<BFloat16>();
  }
}

template <typename T, typename Shape, ConvCall kCall, bool kReluMask>
void launch_implicit_gemm(const Gpu& gpu, const ImplicitGemmParams& n, int shared_bytes,
                          int maximum) {
  const auto kernel = implicit_gemm<T, Shape, kCall, kReluMask>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, maximum);
  check_cuda(allowed, "reserving shared memory");
  const dim3 blocks((n.geometry.rows + Shape::m - 1) / Shape::m,
                    (n.geometry.columns + Shape::n - 1) / Shape::n,
                    n.geometry.groups * n.split.pieces);
  launch_programmatic(gpu, kernel,
                      {blocks, Shape::threads, static_cast<size_t>(shared_bytes),
                       dim3(1, 1, 1u << n.split.cluster_bits)},
                      n);
}

}  // namespace crema

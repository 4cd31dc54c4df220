// The GPU kernels of kernels/reduce/reduce.h. Only for device code.
#pragma once

#include <algorithm>

#include "base/ceil_div.h"
#include "device/launch.h"
#include "device/multiprocessors.h"
#include "kernels/core/warp.cuh"
#include "kernels/reduce/reduce_extent.h"

namespace crema {

// A thread's stride through rows x columns, split in advance to avoid a division per value.
struct SumStep {
  int64_t values, rows, columns;
  SumStep(const SumExtent& e, int64_t step)
      : values(step),
        rows(step / std::max<int64_t>(e.columns, 1)),
        columns(step % std::max<int64_t>(e.columns, 1)) {}
};

// Adds the values first, first + step, ... of the sums from k on, with four loads in flight.
template <typename T, int kSums, typename Value>
__device__ void add_values(const SumExtent& e, const SumStep& step, const Value& value, int64_t k,
                           int64_t first, double (&sums)[kSums]) {
  constexpr int kAtOnce = 4;
  const int64_t count = e.rows * e.columns;
  if (first >= count) return;
  int64_t row = first / e.columns, column = first % e.columns;
  const auto next = [&] {
    row += step.rows;
    column += step.columns;
    const bool over = column >= e.columns;
    row += over ? 1 : 0;
    column -= over ? e.columns : 0;
  };
  int64_t i = first;
  for (; i + (kAtOnce - 1) * step.values < count; i += kAtOnce * step.values) {
    T values[kSums][kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
      for (int s = 0; s < kSums; ++s)
        values[s][j] = value.template operator()<T>(k + s, row, column);
      next();
    }
#pragma unroll
    for (int s = 0; s < kSums; ++s)
      sums[s] += (values[s][0] + values[s][1]) + (values[s][2] + values[s][3]);
  }
  for (; i < count; i += step.values) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) sums[s] += value.template operator()<T>(k + s, row, column);
    next();
  }
}

// Few sums of many values: gridDim.x blocks share one; if they are several, the last to finish adds
// their partial sums. kSums sums of the same values are computed together.
template <typename T, int kSums, typename Value, typename Finish>
__global__ void __launch_bounds__(256) run_sum(SumExtent e, SumStep step, Value value,
                                               Finish finish, double* parts, unsigned* counters) {
  const int pieces = static_cast<int>(gridDim.x), thread = static_cast<int>(threadIdx.x);
  for (int64_t k = blockIdx.y; k < e.sums; k += gridDim.y) {
    double sums[kSums] = {};
    add_values<T>(e, step, value, k, blockIdx.x * 256 + threadIdx.x, sums);
#pragma unroll
    for (int s = 0; s < kSums; ++s) sums[s] = block_all(sums[s], Plus{});
    if (pieces > 1) {
      double* const of_sum = parts + k * pieces * kSums;
      if (thread == 0) {
#pragma unroll
        for (int s = 0; s < kSums; ++s) of_sum[s * pieces + blockIdx.x] = sums[s];
      }
      if (!last_of(counters + k, pieces)) continue;
#pragma unroll
      for (int s = 0; s < kSums; ++s) {
        double sum = 0;
        for (int piece = thread; piece < pieces; piece += 256)
          sum += __ldcg(of_sum + s * pieces + piece);
        sums[s] = block_all(sum, Plus{});
      }
    }
    if (thread == 0) finish(k, sums);
  }
}

// Many sums of few values: one warp per sum.
template <typename T, typename Value, typename Finish>
__global__ void __launch_bounds__(256)
    run_sum_in_warps(SumExtent e, SumStep step, Value value, Finish finish) {
  const int64_t first = blockIdx.x * static_cast<int64_t>(8) + threadIdx.x / 32;
  for (int64_t k = first; k < e.sums; k += gridDim.x * static_cast<int64_t>(8)) {
    double sums[1] = {};
    add_values<T>(e, step, value, k, threadIdx.x % 32, sums);
    sums[0] = warp_all(sums[0], Plus{});
    if (threadIdx.x % 32 == 0) finish(k, sums);
  }
}

// The sum over the eight warps of a block, lane by lane, in the first warp.
__device__ inline double add_warps(double value) {
  __shared__ double of_warp[8][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  __syncthreads();
  of_warp[warp][lane] = value;
  __syncthreads();
  double sum = 0;
  if (warp == 0) {
#pragma unroll
    for (int other = 0; other < 8; ++other) sum += of_warp[other][lane];
  }
  return sum;
}

// Sums whose values are adjacent in memory across sums: one lane per sum; the warps of gridDim.x
// blocks share the rows.
template <typename T, typename Value, typename Finish>
__global__ void __launch_bounds__(256)
    run_sum_in_lanes(SumExtent e, Value value, Finish finish, double* parts, unsigned* counters) {
  constexpr int kAtOnce = 4;
  const int pieces = static_cast<int>(gridDim.x);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t step = static_cast<int64_t>(pieces) * 8;
  for (int64_t tile = blockIdx.y; tile * 32 < e.sums; tile += gridDim.y) {
    const int64_t k = tile * 32 + lane;
    double sum = 0;
    if (k < e.sums) {
      int64_t row = blockIdx.x * static_cast<int64_t>(8) + warp;
      for (; row + (kAtOnce - 1) * step < e.rows; row += kAtOnce * step) {
        T values[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j)
          values[j] = value.template operator()<T>(k, row + j * step, 0);
        sum += (values[0] + values[1]) + (values[2] + values[3]);
      }
      for (; row < e.rows; row += step) sum += value.template operator()<T>(k, row, 0);
    }
    sum = add_warps(sum);
    if (pieces > 1) {
      double* const of_tile = parts + tile * pieces * 32;
      if (warp == 0) of_tile[blockIdx.x * 32 + lane] = sum;
      if (!last_of(counters + tile, pieces)) continue;
      sum = 0;
      for (int piece = warp; piece < pieces; piece += 8) sum += __ldcg(of_tile + piece * 32 + lane);
      sum = add_warps(sum);
    }
    if (warp == 0 && k < e.sums) finish(k, &sum);
  }
}

// Blocks of `kernel` that share each of `sums` sums: at most as many as a GPU runs at once, each
// with at least `minimum` values or rows.
template <typename Kernel>
unsigned blocks_of_sum(const Kernel& kernel, int64_t sums, int64_t count, int64_t minimum) {
  if (sums > Gpu::kCounters) return 1;
  int each_processor = 1;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each_processor, kernel, 256, 0),
             "asking how many blocks fit");
  const int64_t room = int64_t{kTypicalMultiprocessors} * each_processor / sums;
  return static_cast<unsigned>(std::max<int64_t>(1, std::min(ceil_div(count, minimum), room)));
}

constexpr int64_t kMinOfBlock = 2048;  // values

template <typename T, typename Value, typename Finish>
void sum_on_gpu(const Gpu& gpu, const SumExtent& e, const Value& value, const Finish& finish) {
  if (e.sums == 0) return;
  const int64_t count = e.rows * e.columns;
  auto* const parts = reinterpret_cast<double*>(gpu.partial_sums);
  const auto maximum = [](int64_t blocks) {
    return static_cast<unsigned>(std::min<int64_t>(blocks, 65535));
  };
  if (e.sums > 1 && e.columns == 1 && e.rows > 1) {
    const auto kernel = run_sum_in_lanes<T, Value, Finish>;
    const int64_t tiles = ceil_div(e.sums, 32);
    const dim3 blocks(blocks_of_sum(kernel, tiles, e.rows, 64), maximum(tiles));
    launch(gpu, kernel, {blocks, 256}, e, value, finish, parts, gpu.counters);
  } else if (e.sums > 1 &&
             (count <= 256 || (count <= 4096 && e.sums >= kTypicalMultiprocessors * 32))) {
    launch(gpu, run_sum_in_warps<T, Value, Finish>, {maximum(ceil_div(e.sums, 8)), 256}, e,
           SumStep(e, 32), value, finish);
  } else {
    const auto kernel = run_sum<T, 1, Value, Finish>;
    const unsigned pieces = blocks_of_sum(kernel, e.sums, count, kMinOfBlock);
    launch(gpu, kernel, {dim3(pieces, maximum(e.sums)), 256}, e, SumStep(e, pieces * int64_t{256}),
           value, finish, parts, gpu.counters);
  }
}

// kSums sums over the same rows and columns.
template <typename T, int kSums, typename Value, typename Finish>
void totals_on_gpu(const Gpu& gpu, int64_t rows, int64_t columns, const Value& value,
                   const Finish& finish) {
  const SumExtent e{1, rows, columns};
  const auto kernel = run_sum<T, kSums, Value, Finish>;
  const unsigned pieces = blocks_of_sum(kernel, 1, rows * columns, kMinOfBlock);
  launch(gpu, kernel, {pieces, 256}, e, SumStep(e, pieces * int64_t{256}), value, finish,
         reinterpret_cast<double*>(gpu.partial_sums), gpu.counters);
}

}  // namespace crema

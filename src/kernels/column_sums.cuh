// Sums over the rows of matrices (rows x columns, a row after the other in memory: channels-last
// activations) in one kernel: every block sums some rows and leaves its part in Gpu::parts; of the
// blocks that share columns the last to finish adds the parts, in their order. Only for .cu files
// of a CUDA build.
#pragma once

#include <algorithm>

#include "device/gpu.h"
#include "kernels/pack.h"
#ifdef __CUDACC__
#include "kernels/warp.cuh"
#endif

namespace crema {

constexpr int kRowsAtOnce = 4;  // of a thread

// How the work is laid out: a block has `lanes` threads side by side, each with a pack of columns,
// and as many rows of threads as fit.
struct ColumnGrid {
  int64_t rows, columns;
  int lanes, threads_down, sums;
  int64_t rows_each;  // of a block
  dim3 blocks;        // x: pieces of the rows, y: tiles of the columns

  ColumnGrid(int64_t rows_, int64_t columns_, int pack, int sums_)
      : rows(rows_), columns(columns_), sums(sums_) {
    const int64_t packs = columns / pack;
    // 64 columns are a whole memory line of 16-bit numbers; more of them in a block would leave
    // more parts for its last one to add.
    const int64_t narrow = std::max<int64_t>(1, 64 / pack);
    const int64_t least = (packs + Gpu::kCounters - 1) / Gpu::kCounters;
    const auto pieces = [](int64_t count, int64_t size) { return (count + size - 1) / size; };
    // Cut evenly, so that no block has idle threads.
    const int64_t most = std::min<int64_t>(std::max(narrow, least), 256);
    lanes = static_cast<int>(pieces(packs, pieces(packs, most)));
    threads_down = 256 / lanes;
    const int64_t tiles = pieces(packs, lanes);
    // About three blocks for every multiprocessor, each with whole sets of rows.
    const int64_t set = threads_down * kRowsAtOnce, sets = pieces(rows, set);
    const int64_t wanted = std::max<int64_t>(1, 132 * 3 / tiles);
    const int64_t room = std::clamp<int64_t>(Gpu::kParts / (sums * columns), 1, 1 << 16);
    rows_each = set * pieces(sets, std::min(wanted, room));
    blocks = dim3(static_cast<unsigned>((rows + rows_each - 1) / rows_each),
                  static_cast<unsigned>(tiles));
  }

  // Where nothing is summed: whole rows, and short blocks, so that none is late.
  ColumnGrid(int64_t rows_, int64_t columns_, int pack) : rows(rows_), columns(columns_), sums(0) {
    const int64_t packs = columns / pack, tiles = (packs + 255) / 256;
    lanes = static_cast<int>(std::min<int64_t>(packs, 256));
    threads_down = 256 / lanes;
    rows_each = threads_down * 16;
    blocks = dim3(static_cast<unsigned>((rows + rows_each - 1) / rows_each),
                  static_cast<unsigned>(tiles));
  }
};

#ifdef __CUDACC__

// Rows that a thread visits at once, so that their loads are on the way together: `first` and those
// `step` apart from it.
struct RowSet {
  int64_t first, step;
};

// Calls visit<count>(rows, first column) for this thread's rows, kRowsAtOnce or 1 at a time.
template <int kPack, typename Visit>
__device__ void over_rows(const ColumnGrid& grid, const Visit& visit) {
  const int lane = static_cast<int>(threadIdx.x) % grid.lanes;
  const int down = static_cast<int>(threadIdx.x) / grid.lanes;
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * grid.lanes + lane) * kPack;
  if (down >= grid.threads_down || column >= grid.columns) return;
  const int64_t begin = blockIdx.x * grid.rows_each,
                end = begin + grid.rows_each < grid.rows ? begin + grid.rows_each : grid.rows;
  const int64_t step = grid.threads_down;
  int64_t row = begin + down;
  for (; row + (kRowsAtOnce - 1) * step < end; row += kRowsAtOnce * step)
    visit.template operator()<kRowsAtOnce>(RowSet{row, step}, column);
  for (; row < end; row += step) visit.template operator()<1>(RowSet{row, step}, column);
}

// Other blocks' sums, past the first cache, which does not see what they wrote.
template <int kCount>
__device__ Pack<float, kCount> load_part(const float* part) {
  Pack<float, kCount> loaded;
  if constexpr (kCount == 4) {
    const float4 four = __ldcg(reinterpret_cast<const float4*>(part));
    loaded = {{four.x, four.y, four.z, four.w}};
  } else {
#pragma unroll
    for (int k = 0; k < kCount; ++k) loaded.v[k] = __ldcg(part + k);
  }
  return loaded;
}

// In a block: visit<count>(rows, first column, sums[kSums][kPack]) for this thread's rows; then all
// threads work together, and finish(column, totals[kSums]) is called once for each column, in some
// block.
template <int kPack, int kSums, typename Visit, typename Finish>
__device__ void sum_columns(const ColumnGrid& grid, float* parts, unsigned* counters,
                            const Visit& visit, const Finish& finish) {
  // Every thread's sums, then the sums of threads that share columns, in double.
  constexpr int kWide = kPack < 4 ? kPack : 4;  // columns whose parts are loaded at once
  constexpr int kWidth = 256 * (kPack < 2 * kWide ? 2 * kWide : kPack);
  __shared__ __align__(16) float shared[kSums][kWidth];
  const int lane = static_cast<int>(threadIdx.x) % grid.lanes;
  const int down = static_cast<int>(threadIdx.x) / grid.lanes;
  float sums[kSums][kPack] = {};
  over_rows<kPack>(grid, [&]<int kRows>(const RowSet& rows, int64_t at) {
    visit.template operator()<kRows>(rows, at, sums);
  });
  const int across = grid.lanes * kPack;
  if (down < grid.threads_down) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
#pragma unroll
      for (int k = 0; k < kPack; ++k) shared[s][down * across + lane * kPack + k] = sums[s][k];
    }
  }
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.y) * across;
  const int columns = static_cast<int>(min(static_cast<int64_t>(across), grid.columns - first));
  const bool alone = gridDim.x == 1;
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += 256) {
    double totals[kSums];
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
      float sum = 0;
      for (int other = 0; other < grid.threads_down; ++other) sum += shared[s][other * across + c];
      totals[s] = sum;
      if (!alone)
        parts[(static_cast<int64_t>(blockIdx.x) * kSums + s) * grid.columns + first + c] = sum;
    }
    if (alone) finish(first + c, totals);
  }
  if (alone) return;
  if (!last_of(&counters[blockIdx.y], static_cast<int>(gridDim.x))) return;
  // Threads that share columns take their parts in turn.
  const int groups = columns / kWide, width = min(groups, 256), sharers = 256 / width;
  const int sharer = static_cast<int>(threadIdx.x) / width, pieces = static_cast<int>(gridDim.x);
  double* const of_sharers = reinterpret_cast<double*>(&shared[0][0]);
  for (int base = 0; base < groups; base += width) {
    const int group = base + static_cast<int>(threadIdx.x) % width;
    const int across_base = min(width, groups - base) * kWide;
    double totals[kSums][kWide] = {};
    if (group < groups && sharer < sharers) {
      constexpr int kAtOnce = 8 / kSums;  // loads on the way together
      for (int piece = sharer; piece < pieces; piece += kAtOnce * sharers) {
        Pack<float, kWide> part[kSums][kAtOnce];
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u) {
          const int64_t at = min(piece + u * sharers, pieces - 1);
#pragma unroll
          for (int s = 0; s < kSums; ++s)
            part[s][u] =
                load_part<kWide>(&parts[(at * kSums + s) * grid.columns + first + group * kWide]);
        }
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u) {
#pragma unroll
          for (int s = 0; s < kSums; ++s) {
#pragma unroll
            for (int k = 0; k < kWide; ++k)
              totals[s][k] += piece + u * sharers < pieces ? part[s][u].v[k] : 0;
          }
        }
      }
    }
    __syncthreads();
    if (group < groups && sharer < sharers) {
#pragma unroll
      for (int s = 0; s < kSums; ++s) {
#pragma unroll
        for (int k = 0; k < kWide; ++k)
          of_sharers[(s * sharers + sharer) * across_base + (group - base) * kWide + k] =
              totals[s][k];
      }
    }
    __syncthreads();
    for (int c = static_cast<int>(threadIdx.x); c < across_base; c += 256) {
      double sum[kSums] = {};
      for (int other = 0; other < sharers; ++other) {
#pragma unroll
        for (int s = 0; s < kSums; ++s)
          sum[s] += of_sharers[(s * sharers + other) * across_base + c];
      }
      finish(first + base * kWide + c, sum);
    }
  }
}

#endif

// Calls body<kPack>() with the widest pack of T, up to 16 bytes, that divides the columns and that
// the pointers' alignment allows.
template <typename T, typename Body, typename... Pointers>
void with_column_pack(int64_t columns, const Body& body, const Pointers*... pointers) {
  const auto fits = [&](int pack) {
    return columns % pack == 0 &&
           ((reinterpret_cast<uintptr_t>(pointers) % (pack * sizeof(T)) == 0) && ...);
  };
  if constexpr (kPackCount<T> >= 8) {
    if (fits(8)) return body.template operator()<8>();
  }
  if constexpr (kPackCount<T> >= 4) {
    if (fits(4)) return body.template operator()<4>();
  }
  if (fits(2)) return body.template operator()<2>();
  body.template operator()<1>();
}

}  // namespace crema

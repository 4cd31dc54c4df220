// Sums over the rows of matrices (rows x columns, a row after the other in memory: channels-last
// activations) in one kernel: every block sums some rows and leaves its part in Gpu::parts; of the
// blocks that share columns the last to finish adds the parts, in their order. Only for .cu files
// of a CUDA build.
#pragma once

#include <algorithm>

#include "device/gpu.h"
#include "kernels/pack.h"

namespace crema {

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
    lanes = static_cast<int>(std::min<int64_t>({packs, std::max(narrow, least), 256}));
    threads_down = 256 / lanes;
    const int64_t tiles = (packs + lanes - 1) / lanes;
    // Enough blocks for every multiprocessor, but at least 8 rows for each thread.
    const int64_t wanted = std::max<int64_t>(1, 132 * 3 / tiles);
    const int64_t room = Gpu::kParts / (sums * columns);
    const int64_t sensible = (rows + threads_down * 8 - 1) / (threads_down * 8);
    const int64_t pieces = std::clamp<int64_t>(std::min({wanted, room, sensible}), 1, 1 << 16);
    rows_each = (rows + pieces - 1) / pieces;
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
constexpr int kRowsAtOnce = 4;

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

// In a block: visit<count>(rows, first column, sums[kSums][kPack]) for this thread's rows; then all
// threads work together, and finish(column, totals[kSums]) is called once for each column, in some
// block.
template <int kPack, int kSums, typename Visit, typename Finish>
__device__ void sum_columns(const ColumnGrid& grid, float* parts, unsigned* counters,
                            const Visit& visit, const Finish& finish) {
  // Every thread's sums, then the sums of threads that share columns.
  constexpr int kWidth = 256 * (kPack < 2 ? 2 : kPack);
  __shared__ __align__(16) float shared[kSums][kWidth];
  __shared__ bool last;
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
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&counters[blockIdx.y], 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  // Where there are fewer columns than threads, several threads share one and its parts.
  const int width = min(columns, 256), sharers = 256 / width, pieces = static_cast<int>(gridDim.x);
  const int sharer = static_cast<int>(threadIdx.x) / width;
  double* const of_sharers = reinterpret_cast<double*>(&shared[0][0]);  // 256 for each sum fit
  for (int base = 0; base < columns; base += width) {
    const int c = base + static_cast<int>(threadIdx.x) % width;
    const bool sums_up = c < columns && sharer < sharers;
    double totals[kSums] = {};
    if (sums_up) {
      constexpr int kAtOnce = 8;  // loads on the way together
      for (int piece = sharer; piece < pieces; piece += kAtOnce * sharers) {
        float part[kSums][kAtOnce];
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u) {
          const int64_t at = piece + u * sharers;
#pragma unroll
          for (int s = 0; s < kSums; ++s)
            part[s][u] =
                at < pieces ? __ldcg(&parts[(at * kSums + s) * grid.columns + first + c]) : 0;
        }
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u) {
#pragma unroll
          for (int s = 0; s < kSums; ++s) totals[s] += part[s][u];
        }
      }
    }
    if (sharers > 1) {
      __syncthreads();
      if (sums_up) {
#pragma unroll
        for (int s = 0; s < kSums; ++s) of_sharers[s * 256 + sharer * width + c] = totals[s];
      }
      __syncthreads();
      if (sums_up && sharer == 0) {
        for (int other = 1; other < sharers; ++other) {
#pragma unroll
          for (int s = 0; s < kSums; ++s) totals[s] += of_sharers[s * 256 + other * width + c];
        }
      }
    }
    if (sums_up && sharer == 0) finish(first + c, totals);
  }
  if (threadIdx.x == 0) counters[blockIdx.y] = 0;
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

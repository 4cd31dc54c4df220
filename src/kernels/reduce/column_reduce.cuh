// Column sums of matrices (rows x columns, row-major: channels-last activations) in one kernel:
// every block sums some rows and writes a partial result to Gpu::partial_sums; of the blocks that
// share columns the last to finish adds the partial results in order. Only for .cu files of a CUDA
// build.
#pragma once

#include <algorithm>

#include "base/ceil_div.h"
#include "device/gpu.h"
#include "device/multiprocessors.h"
#include "kernels/core/pack.h"
#ifdef __CUDACC__
#include "kernels/core/warp.cuh"
#endif

namespace crema {

// Rows that a thread loads together, so that their loads are in flight together: `first`, first +
// step, ...
struct RowSet {
  int64_t first, step;
};
constexpr int kRowsAtOnce = 4;

// The tiling: a block has `lanes` threads across, each with a pack of columns, and as many rows of
// threads as fit; a chunk is kRowsAtOnce rows for each of them.
struct ColumnGrid {
  int64_t rows, columns, chunk, chunks;
  int lanes, threads_down, sums = 0;
  // Start with the last rows: they are still in the cache if the previous kernel started with the
  // first.
  bool from_end = false;
  dim3 blocks;  // x: pieces of the rows, y: tiles of the columns

  // each_processor: resident blocks per multiprocessor.
  ColumnGrid(int64_t rows_, int64_t columns_, int pack, int sums_, int each_processor)
      : rows(rows_), columns(columns_), sums(sums_), from_end(true) {
    const int64_t packs = columns / pack;
    // 64 columns of 16-bit values fill a cache line; wider blocks would leave more partial results
    // for the last one to add.
    const int64_t narrow = std::max<int64_t>(1, 64 / pack);
    const int64_t minimum = ceil_div(packs, Gpu::kCounters);
    // Divided evenly, so that no block has idle threads.
    const int64_t maximum = std::min<int64_t>(std::max(narrow, minimum), 256);
    const int64_t cuts = ceil_div(packs, maximum);
    lanes = static_cast<int>(ceil_div(packs, cuts));
    threads_down = 256 / lanes;
    count_chunks();
    const int64_t tiles = ceil_div(packs, lanes);
    // Enough blocks for every multiprocessor, but at least two chunks per block.
    const int64_t wanted = std::max<int64_t>(1, kTypicalMultiprocessors * each_processor / tiles);
    const int64_t room = Gpu::kPartialSums / (sums * columns);
    const int64_t pieces = std::min({wanted, room, ceil_div(chunks, 2)});
    blocks =
        dim3(static_cast<unsigned>(std::max<int64_t>(1, pieces)), static_cast<unsigned>(tiles));
  }

  // Without sums: whole rows, and little work per block, so that none finishes late.
  ColumnGrid(int64_t rows_, int64_t columns_, int pack) : rows(rows_), columns(columns_) {
    const int64_t packs = columns / pack, tiles = ceil_div(packs, 256);
    lanes = static_cast<int>(std::min<int64_t>(packs, 256));
    threads_down = 256 / lanes;
    count_chunks();
    blocks =
        dim3(static_cast<unsigned>(ceil_div(chunks, kChunksEach)), static_cast<unsigned>(tiles));
  }

  static constexpr int kChunksEach = 4;  // of a block that sums nothing

 private:
  void count_chunks() {
    chunk = static_cast<int64_t>(threads_down) * kRowsAtOnce;
    chunks = ceil_div(rows, chunk);
  }
};

#ifdef __CUDACC__

// The grid for `kernel`, which calls sum_columns().
template <typename Kernel>
ColumnGrid grid_of_sums(const Kernel& kernel, int64_t rows, int64_t columns, int pack, int sums) {
  int blocks = 1;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 256, 0),
             "asking how many blocks fit");
  return {rows, columns, pack, sums, std::clamp(blocks, 1, 4)};
}

// The first column of this thread's pack; it may be past the last column.
template <int kPack>
__device__ int64_t first_column(const ColumnGrid& grid) {
  const int lane = static_cast<int>(threadIdx.x) % grid.lanes;
  return (static_cast<int64_t>(blockIdx.y) * grid.lanes + lane) * kPack;
}

// Calls visit<count>(rows, first column) for this thread's rows, kRowsAtOnce or 1 at a time. Blocks
// that sum stride together through all rows; others have contiguous rows.
template <int kPack, typename Visit>
__device__ void over_rows(const ColumnGrid& grid, const Visit& visit) {
  const int down = static_cast<int>(threadIdx.x) / grid.lanes;
  const int64_t column = first_column<kPack>(grid);
  if (down >= grid.threads_down || column >= grid.columns) return;
  const int64_t step = grid.threads_down;
  const int64_t each = grid.sums ? 1 : ColumnGrid::kChunksEach, first = blockIdx.x * each;
  const int64_t stride = grid.sums ? gridDim.x : 1;
  const int64_t end = grid.sums ? grid.chunks : min(first + each, grid.chunks);
  for (int64_t k = first; k < end; k += stride) {
    const int64_t begin = (grid.from_end ? grid.chunks - 1 - k : k) * grid.chunk;
    if (begin + grid.chunk <= grid.rows) {
      visit.template operator()<kRowsAtOnce>(RowSet{begin + down, step}, column);
    } else {
      for (int64_t row = begin + down; row < grid.rows; row += step)
        visit.template operator()<1>(RowSet{row, step}, column);
    }
  }
}

// In a block: adds the sums of threads that share columns and calls each(column of the tile,
// totals[kSums]) once for each of the tile's `columns`.
template <typename Total, int kPack, int kSums, typename Each>
__device__ void add_down(const ColumnGrid& grid, const float (&sums)[kSums][kPack],
                         float (&shared)[kSums][256 * kPack], int columns, const Each& each) {
  const int lane = static_cast<int>(threadIdx.x) % grid.lanes;
  const int down = static_cast<int>(threadIdx.x) / grid.lanes;
  const int across = grid.lanes * kPack;
  __syncthreads();
  if (down < grid.threads_down) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
#pragma unroll
      for (int k = 0; k < kPack; ++k) shared[s][down * across + lane * kPack + k] = sums[s][k];
    }
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += 256) {
    Total totals[kSums] = {};
    for (int other = 0; other < grid.threads_down; ++other) {
#pragma unroll
      for (int s = 0; s < kSums; ++s) totals[s] += shared[s][other * across + c];
    }
    each(c, totals);
  }
}

// Loads kPack floats that another block has written.
template <int kPack>
__device__ void load_parts(const float* from, float (&to)[kPack]) {
  if constexpr (kPack % 4 == 0) {
#pragma unroll
    for (int k = 0; k < kPack; k += 4) {
      const float4 four = __ldcg(reinterpret_cast<const float4*>(from + k));
      to[k] = four.x, to[k + 1] = four.y, to[k + 2] = four.z, to[k + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int k = 0; k < kPack; ++k) to[k] = __ldcg(from + k);
  }
}

// In a block: calls visit<count>(rows, first column, sums[kSums][kPack]) for this thread's rows;
// then all blocks cooperate, and one of them calls finish(column, totals[kSums]) once per column.
template <int kPack, int kSums, typename Visit, typename Finish>
__device__ void sum_columns(const ColumnGrid& grid, float* parts, unsigned* counters,
                            const Visit& visit, const Finish& finish) {
  __shared__ float shared[kSums][256 * kPack];
  float sums[kSums][kPack] = {};
  over_rows<kPack>(grid, [&]<int kRows>(const RowSet& rows, int64_t at) {
    visit.template operator()<kRows>(rows, at, sums);
  });
  const int across = grid.lanes * kPack;
  const int64_t first = static_cast<int64_t>(blockIdx.y) * across;
  const int columns = static_cast<int>(min(static_cast<int64_t>(across), grid.columns - first));
  const auto finish_one = [&](int c, const double* totals) { finish(first + c, totals); };
  if (gridDim.x == 1) return add_down<double>(grid, sums, shared, columns, finish_one);
  add_down<float>(grid, sums, shared, columns, [&](int c, const float* totals) {
#pragma unroll
    for (int s = 0; s < kSums; ++s)
      parts[(static_cast<int64_t>(blockIdx.x) * kSums + s) * grid.columns + first + c] = totals[s];
  });
  if (!last_of(&counters[blockIdx.y], static_cast<int>(gridDim.x))) return;
  // Threads that share columns split their parts.
  const int lane = static_cast<int>(threadIdx.x) % grid.lanes;
  const int down = static_cast<int>(threadIdx.x) / grid.lanes;
  const int pieces =
      lane * kPack < columns && down < grid.threads_down ? static_cast<int>(gridDim.x) : 0;
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
#pragma unroll
    for (int k = 0; k < kPack; ++k) sums[s][k] = 0;
  }
#pragma unroll 4
  for (int piece = down; piece < pieces; piece += grid.threads_down) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
      float part[kPack];
      load_parts<kPack>(
          &parts[(static_cast<int64_t>(piece) * kSums + s) * grid.columns + first + lane * kPack],
          part);
#pragma unroll
      for (int k = 0; k < kPack; ++k) sums[s][k] += part[k];
    }
  }
  add_down<double>(grid, sums, shared, columns, finish_one);
}

#endif

// Calls body<kPack>() with the widest pack of T, at most 16 bytes, that divides the columns and
// that the pointers' alignment allows.
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

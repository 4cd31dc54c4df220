// The GPU's RoI pooling gradients for channels-last maps, where neighboring lanes have neighboring
// channels. Only for device code.
#pragma once

#include "base/ceil_div.h"
#include "device/launch.h"
#include "kernels/roi/roi_packs.h"

namespace crema::roi {

constexpr int kRoiWarps = 8;  // of a block, which split the RoIs

// Splits a linear index whose fastest dimension has extent `count`: returns that coordinate and
// leaves the others in `rest`.
__device__ inline int take_fastest(int64_t& rest, int count) {
  const int64_t others = rest / count;
  const int at = static_cast<int>(rest - others * count);
  rest = others;
  return at;
}

// The bits of a word whose RoIs belong to warp `part`: adjacent ones.
__device__ inline uint32_t bits_of_part(int part) {
  constexpr int kBits = 32 / kRoiWarps;
  static_assert(kBits * kRoiWarps == 32);
  return (0xffffffffu >> (32 - kBits)) << (kBits * part);
}

// A warp computes one word of the bit mask of RoIs that read a row or a column; each lane tests one
// RoI.
inline __global__ void __launch_bounds__(256) mark_readers(RoiTables t, bool own_channels) {
  const int64_t index = (blockIdx.x * int64_t{256} + threadIdx.x) / 32;
  const int64_t row_lines = int64_t{t.readers.row_sets} * t.images * t.height,
                lines = row_lines + int64_t{t.readers.column_sets} * t.width;
  if (index >= lines * t.readers.words) return;
  const int64_t line = index / t.readers.words;
  const auto r = static_cast<int32_t>(32 * (index - line * t.readers.words) + threadIdx.x % 32);
  const bool across = line >= row_lines;
  const auto at = static_cast<int32_t>(across ? line - row_lines : line);
  const int32_t extent = across ? t.width : t.height, position = at % extent,
                image = across ? 0 : at / extent % t.images,
                set = across ? at / extent : at / extent / t.images;
  bool reads = r < t.rois && (across ? t.image[r] >= 0 : t.image[r] == image);
  if (reads) {
    const Span cells = across ? t.columns_at(r, position) : t.rows_at(r, position);
    reads = own_channels ? cells.begin <= set && set < cells.end : !cells.empty();
  }
  const uint32_t bits = __ballot_sync(0xffffffffu, reads);
  uint32_t* const words =
      across ? t.readers.columns + index - row_lines * t.readers.words : t.readers.rows + index;
  if (threadIdx.x % 32 == 0) *words = bits;
}

// A block has some columns of one row of a map, for 32 channels. Its warps split the RoIs: each
// walks through the cells that read the row and adds their gradients for these positions in shared
// memory, where each lane has its own bank.
template <typename T>
struct MaxRow {
  using C = Compute<T>;
  static constexpr int kColumns = 256 / static_cast<int>(sizeof(C)), kAtOnce = 8;
  using Sums = C[kColumns][32];
  static constexpr size_t kBytes = kRoiWarps * sizeof(Sums);
  static int64_t blocks(const MapLayout& in, int32_t images) {
    const int64_t groups = ceil_div(in.channels, 32), tiles = ceil_div(in.columns, kColumns);
    return images * int64_t{in.rows} * tiles * groups;
  }
};

template <typename T>
__global__ void __launch_bounds__(32 * kRoiWarps) max_roi_gradient(MaxGradient<T> g) {
  using Row = MaxRow<T>;
  using C = Compute<T>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto* const parts = reinterpret_cast<typename Row::Sums*>(memory);
  const RoiTables& t = g.t;
  const int part = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  int64_t rest = blockIdx.x;
  const int group = take_fastest(rest, (g.in.channels + 31) / 32);
  const int tile = take_fastest(rest, (t.width + Row::kColumns - 1) / Row::kColumns);
  const int h = take_fastest(rest, t.height);
  const auto image = static_cast<int32_t>(rest);
  const int channel = 32 * group + lane, first = tile * Row::kColumns;
  const int own = channel < g.in.channels ? channel : g.in.channels - 1;
  const int count = min(Row::kColumns, t.width - first), begin = h * t.width + first;
  typename Row::Sums& sums = parts[part];
  for (int w = 0; w < count; ++w) sums[w][lane] = 0;
  const int64_t step = g.out.step();
  const uint32_t* const readers = t.row_readers(image, h, 0);
  for (int word = 0; word < t.readers.words; ++word) {
    uint32_t bits = readers[word] & bits_of_part(part);
    const bool reads = bits >> lane & 1;
    const Span of_lane = reads ? t.rows_at(32 * word + lane, h) : Span{0, 0};
    for (; bits != 0; bits &= bits - 1) {
      const int from = __ffs(static_cast<int>(bits)) - 1;
      const int row = __shfl_sync(0xffffffffu, of_lane.begin, from),
                end = __shfl_sync(0xffffffffu, of_lane.end, from) * t.columns;
      const int64_t grid = g.out.start(32 * word + from, own);
      for (int cell = row * t.columns; cell < end; cell += Row::kAtOnce) {
        int where[Row::kAtOnce];
        C slope[Row::kAtOnce];
#pragma unroll
        for (int k = 0; k < Row::kAtOnce; ++k) {
          const int64_t at = grid + min(cell + k, end - 1) * step;
          where[k] = cell + k < end ? g.index[at] - begin : -1;
          slope[k] = g.dy[at];
        }
#pragma unroll
        for (int k = 0; k < Row::kAtOnce; ++k) {
          if (where[k] >= 0 && where[k] < count) sums[where[k]][lane] += slope[k];
        }
      }
    }
  }
  __syncthreads();
  if (channel >= g.in.channels) return;
  T* const dx = g.dx + g.in.start(image, channel) + begin * g.in.step();
  for (int w = part; w < count; w += kRoiWarps) {
    C sum = 0;
#pragma unroll
    for (int other = 0; other < kRoiWarps; ++other) sum += parts[other][w][lane];
    dx[w * g.in.step()] = sum;
  }
}

// A block has kPositions adjacent positions of a row, for 32 packs of channels. Its warps split the
// RoIs in a way that depends only on their number, and a lane has one pack at all the positions, so
// that each load is used for all of them.
template <typename T>
struct WeightedPositions {
  static constexpr int kPositions = 4;
  static int64_t blocks(const MapLayout& in, int32_t images) {
    const int64_t groups = ceil_div(in.channels / kPackCount<T>, 32);
    return groups * ceil_div(in.columns, kPositions) * in.rows * images;
  }
};

template <typename T>
__global__ void __launch_bounds__(32 * kRoiWarps) weighted_roi_gradient(WeightedGradient<T> g) {
  using C = Compute<T>;
  constexpr int kCount = kPackCount<T>, kPositions = WeightedPositions<T>::kPositions;
  __shared__ C parts[kRoiWarps][kPositions][kCount][32];
  const RoiTables& t = g.t;
  const int part = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int packs = g.in.channels / kCount;
  int64_t rest = blockIdx.x;
  const int pack = 32 * take_fastest(rest, (packs + 31) / 32) + lane;
  const int first = kPositions * take_fastest(rest, (t.width + kPositions - 1) / kPositions);
  const int h = take_fastest(rest, t.height);
  const auto image = static_cast<int32_t>(rest);
  const int channel = (pack < packs ? pack : packs - 1) * kCount;
  int columns[kPositions];  // past the end, the last column repeated
#pragma unroll
  for (int p = 0; p < kPositions; ++p) columns[p] = min(first + p, t.width - 1);
  const int64_t step = g.out.step();
  C sums[kPositions][kCount] = {};
  const auto visit = [&](int32_t r) {
    const Span rows = t.rows_at(r, h);
    Span cells{t.columns, 0};  // the cells that read any of the positions
#pragma unroll
    for (int p = 0; p < kPositions; ++p) {
      const Span of_position = t.columns_at(r, columns[p]);
      cells = {min(cells.begin, of_position.begin), max(cells.end, of_position.end)};
    }
    const int64_t grid = g.out.start(r, channel);
    for (int32_t k = rows.begin; k < rows.end; ++k) {
      const C of_row = t.row_weights(r, k)[h];
      for (int32_t j = cells.begin; j < cells.end; ++j) {
        const float* const of_columns = t.column_weights(r, j);
        const WidePack<T> dy = pack_at(g.dy + grid + (k * t.columns + j) * step);
#pragma unroll
        for (int p = 0; p < kPositions; ++p) {
          const C weight = of_row * static_cast<C>(of_columns[columns[p]]);
#pragma unroll
          for (int c = 0; c < kCount; ++c) sums[p][c] += weight * static_cast<C>(dy.v[c]);
        }
      }
    }
  };
  for (int32_t word = 0; word < t.readers.words; ++word) {
    uint32_t of_positions = 0;
#pragma unroll
    for (int p = 0; p < kPositions; ++p) of_positions |= t.column_readers(columns[p], 0)[word];
    t.for_bits(word, t.row_readers(image, h, 0)[word] & of_positions & bits_of_part(part), visit);
  }
#pragma unroll
  for (int p = 0; p < kPositions; ++p) {
#pragma unroll
    for (int c = 0; c < kCount; ++c) parts[part][p][c][lane] = sums[p][c];
  }
  __syncthreads();
  if (part >= kPositions || first + part >= t.width || pack >= packs) return;
  WidePack<T> dx;
#pragma unroll
  for (int c = 0; c < kCount; ++c) {
    C sum = 0;
#pragma unroll
    for (int other = 0; other < kRoiWarps; ++other) sum += parts[other][part][c][lane];
    dx.v[c] = sum;
  }
  T* const to =
      g.dx + g.in.start(image, channel) + (int64_t{h} * t.width + first + part) * g.in.step();
  *reinterpret_cast<WidePack<T>*>(to) = dx;
}

// Fills readers from the positions tables: which RoIs read each row and each column of the map.
inline void mark_roi_readers(Context& context, const RoiTables& t, bool own_channels) {
  const int64_t lines =
      int64_t{t.readers.row_sets} * t.images * t.height + int64_t{t.readers.column_sets} * t.width;
  const auto blocks = static_cast<unsigned>(ceil_div(lines * t.readers.words, 8));
  if (blocks > 0) launch(context.gpu(), mark_readers, {blocks, 256}, t, own_channels);
}

// Both return false, and write nothing, for a case that they do not support; the first one supports
// every case.
template <typename T>
bool roi_gradient_by_channels(Context& context, const MaxGradient<T>& g) {
  const auto blocks = static_cast<unsigned>(MaxRow<T>::blocks(g.in, g.t.images));
  check_cuda(cudaFuncSetAttribute(max_roi_gradient<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(MaxRow<T>::kBytes)),
             "asking for shared memory");
  launch(context.gpu(), max_roi_gradient<T>, {blocks, 32 * kRoiWarps, MaxRow<T>::kBytes}, g);
  return true;
}

template <typename T>
bool roi_gradient_by_channels(Context& context, const WeightedGradient<T>& g) {
  if (g.own_channels || !takes_packs<T>(g.in.channels, g.dx, g.dy)) return false;
  const auto blocks = static_cast<unsigned>(WeightedPositions<T>::blocks(g.in, g.t.images));
  launch(context.gpu(), weighted_roi_gradient<T>, {blocks, 32 * kRoiWarps}, g);
  return true;
}

}  // namespace crema::roi

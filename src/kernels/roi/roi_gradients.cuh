// A GPU's gradients of pooled regions of channels-last maps, where neighbouring lanes have
// neighbouring channels. Only for device code.
#pragma once

#include "device/launch.h"
#include "kernels/roi/roi_packs.h"

namespace crema {

constexpr int kRegionWarps = 8;  // of a block, which share the regions

// One of `count` things that is numbered fastest in `rest`, which becomes the number of the others.
__device__ inline int take_fastest(int64_t& rest, int count) {
  const int64_t others = rest / count;
  const int at = static_cast<int>(rest - others * count);
  rest = others;
  return at;
}

// The regions of a word that a warp takes: four side by side.
__device__ inline uint32_t bits_of_part(int part) { return 0xfu << (4 * part); }

// A word of the regions that read a row or a column; a lane asks one region.
inline __global__ void __launch_bounds__(256) mark_readers(RegionTables t, bool own_channels) {
  const int64_t index = (blockIdx.x * int64_t{256} + threadIdx.x) / 32;
  const int64_t row_lines = int64_t{t.readers.row_sets} * t.images * t.height,
                lines = row_lines + int64_t{t.readers.column_sets} * t.width;
  if (index >= lines * t.readers.words) return;
  const int64_t line = index / t.readers.words;
  const auto r = static_cast<int32_t>(32 * (index - line * t.readers.words) + threadIdx.x % 32);
  const bool across = line >= row_lines;
  const auto at = static_cast<int32_t>(across ? line - row_lines : line);
  const int32_t extent = across ? t.width : t.height, place = at % extent,
                image = across ? 0 : at / extent % t.images,
                set = across ? at / extent : at / extent / t.images;
  bool reads = r < t.regions && (across ? t.image[r] >= 0 : t.image[r] == image);
  if (reads) {
    const Span cells = across ? t.columns_at(r, place) : t.rows_at(r, place);
    reads = own_channels ? cells.first <= set && set < cells.last : !cells.empty();
  }
  const uint32_t bits = __ballot_sync(0xffffffffu, reads);
  uint32_t* const words =
      across ? t.readers.columns + index - row_lines * t.readers.words : t.readers.rows + index;
  if (threadIdx.x % 32 == 0) *words = bits;
}

// A block has some columns of a row of a map, of 32 channels. Its warps share the regions: each
// walks through the cells that read the row and adds what is meant for these places in shared
// memory, where a lane has a bank.
template <typename T>
struct MaxRow {
  using C = Compute<T>;
  static constexpr int kColumns = 256 / static_cast<int>(sizeof(C)), kAtOnce = 8;
  using Sums = C[kColumns][32];
  static constexpr size_t kBytes = kRegionWarps * sizeof(Sums);
  static int64_t blocks(const Lines& in, int32_t images) {
    const int64_t groups = (in.channels + 31) / 32, tiles = (in.columns + kColumns - 1) / kColumns;
    return images * int64_t{in.rows} * tiles * groups;
  }
};

template <typename T>
__global__ void __launch_bounds__(32 * kRegionWarps) max_region_gradient(MaxGradient<T> g) {
  using Row = MaxRow<T>;
  using C = Compute<T>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto* const parts = reinterpret_cast<typename Row::Sums*>(memory);
  const RegionTables& t = g.t;
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
      const int row = __shfl_sync(0xffffffffu, of_lane.first, from),
                end = __shfl_sync(0xffffffffu, of_lane.last, from) * t.columns;
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
  for (int w = part; w < count; w += kRegionWarps) {
    C sum = 0;
#pragma unroll
    for (int other = 0; other < kRegionWarps; ++other) sum += parts[other][w][lane];
    dx[w * g.in.step()] = sum;
  }
}

// A block has some places of a row side by side, of 32 packs of channels; its warps share the
// regions, in a way that depends on their number only, and a lane has a pack of all the places, so
// that what it loads serves all of them.
template <typename T>
struct WeightedPlaces {
  static constexpr int kPlaces = 4;
  static int64_t blocks(const Lines& in, int32_t images) {
    const int64_t groups = (in.channels / kPackCount<T> + 31) / 32;
    return groups * ((in.columns + kPlaces - 1) / kPlaces) * in.rows * images;
  }
};

template <typename T>
__global__ void __launch_bounds__(32 * kRegionWarps)
    weighted_region_gradient(WeightedGradient<T> g) {
  using C = Compute<T>;
  constexpr int kCount = kPackCount<T>, kPlaces = WeightedPlaces<T>::kPlaces;
  __shared__ C parts[kRegionWarps][kPlaces][kCount][32];
  const RegionTables& t = g.t;
  const int part = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int packs = g.in.channels / kCount;
  int64_t rest = blockIdx.x;
  const int pack = 32 * take_fastest(rest, (packs + 31) / 32) + lane;
  const int first = kPlaces * take_fastest(rest, (t.width + kPlaces - 1) / kPlaces);
  const int h = take_fastest(rest, t.height);
  const auto image = static_cast<int32_t>(rest);
  const int channel = (pack < packs ? pack : packs - 1) * kCount;
  int columns[kPlaces];  // behind the last place the last again
#pragma unroll
  for (int p = 0; p < kPlaces; ++p) columns[p] = min(first + p, t.width - 1);
  const int64_t step = g.out.step();
  C sums[kPlaces][kCount] = {};
  const auto visit = [&](int32_t r) {
    const Span rows = t.rows_at(r, h);
    Span cells{t.columns, 0};  // those that read any of the places
#pragma unroll
    for (int p = 0; p < kPlaces; ++p) {
      const Span of_place = t.columns_at(r, columns[p]);
      cells = {min(cells.first, of_place.first), max(cells.last, of_place.last)};
    }
    const int64_t grid = g.out.start(r, channel);
    for (int32_t k = rows.first; k < rows.last; ++k) {
      const C of_row = t.row_weights(r, k)[h];
      for (int32_t j = cells.first; j < cells.last; ++j) {
        const float* const of_columns = t.column_weights(r, j);
        const WidePack<T> dy = pack_at(g.dy + grid + (k * t.columns + j) * step);
#pragma unroll
        for (int p = 0; p < kPlaces; ++p) {
          const C weight = of_row * static_cast<C>(of_columns[columns[p]]);
#pragma unroll
          for (int c = 0; c < kCount; ++c) sums[p][c] += weight * static_cast<C>(dy.v[c]);
        }
      }
    }
  };
  for (int32_t word = 0; word < t.readers.words; ++word) {
    uint32_t of_places = 0;
#pragma unroll
    for (int p = 0; p < kPlaces; ++p) of_places |= t.column_readers(columns[p], 0)[word];
    t.for_bits(word, t.row_readers(image, h, 0)[word] & of_places & bits_of_part(part), visit);
  }
#pragma unroll
  for (int p = 0; p < kPlaces; ++p) {
#pragma unroll
    for (int c = 0; c < kCount; ++c) parts[part][p][c][lane] = sums[p][c];
  }
  __syncthreads();
  if (part >= kPlaces || first + part >= t.width || pack >= packs) return;
  WidePack<T> dx;
#pragma unroll
  for (int c = 0; c < kCount; ++c) {
    C sum = 0;
#pragma unroll
    for (int other = 0; other < kRegionWarps; ++other) sum += parts[other][part][c][lane];
    dx.v[c] = sum;
  }
  T* const to =
      g.dx + g.in.start(image, channel) + (int64_t{h} * t.width + first + part) * g.in.step();
  *reinterpret_cast<WidePack<T>*>(to) = dx;
}

// Which regions read a row or a column of the map, from which places they read.
inline void mark_region_readers(Context& context, const RegionTables& t, bool own_channels) {
  const int64_t lines =
      int64_t{t.readers.row_sets} * t.images * t.height + int64_t{t.readers.column_sets} * t.width;
  const auto blocks = static_cast<unsigned>((lines * t.readers.words + 7) / 8);
  if (blocks > 0) launch(context.gpu(), mark_readers, {blocks, 256}, t, own_channels);
}

// False, with nothing done, where channels do not allow it.
template <typename T>
bool region_gradient_by_channels(Context& context, const MaxGradient<T>& g) {
  const auto blocks = static_cast<unsigned>(MaxRow<T>::blocks(g.in, g.t.images));
  check_cuda(
      cudaFuncSetAttribute(max_region_gradient<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(MaxRow<T>::kBytes)),
      "asking for shared memory");
  launch(context.gpu(), max_region_gradient<T>, {blocks, 32 * kRegionWarps, MaxRow<T>::kBytes}, g);
  return true;
}

template <typename T>
bool region_gradient_by_channels(Context& context, const WeightedGradient<T>& g) {
  if (g.own_channels || !takes_packs<T>(g.in.channels, g.dx, g.dy)) return false;
  const auto blocks = static_cast<unsigned>(WeightedPlaces<T>::blocks(g.in, g.t.images));
  launch(context.gpu(), weighted_region_gradient<T>, {blocks, 32 * kRegionWarps}, g);
  return true;
}

}  // namespace crema

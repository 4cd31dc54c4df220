// Memory-bound matrix transposition, tile by tile through shared memory. Only for .cu files of a
// CUDA build.
#pragma once

#include <algorithm>

#include "base/ceil_div.h"
#include "device/launch.h"
#include "kernels/core/divisor.h"
#include "kernels/core/pack.h"

namespace crema {

// Element (row, column) of a matrix moves from row * from_row + column to column * to_column + row.
struct Transposition {
  static constexpr int kMaxOuter = 4;

  int64_t rows = 1, columns = 1, from_row = 0, to_column = 0;
  // A batch of matrices: their number is the product of the extents, with the given strides in
  // elements.
  int outer = 0;
  int64_t extent[kMaxOuter] = {1, 1, 1, 1}, from[kMaxOuter] = {}, to[kMaxOuter] = {};

  int64_t matrices() const { return extent[0] * extent[1] * extent[2] * extent[3]; }
  // True when all sizes and strides are multiples of `pack` elements.
  bool in_packs(int pack) const {
    bool fits =
        rows % pack == 0 && columns % pack == 0 && from_row % pack == 0 && to_column % pack == 0;
    for (int i = 0; i < kMaxOuter; ++i) fits = fits && from[i] % pack == 0 && to[i] % pack == 0;
    return fits;
  }
};

namespace transposing {

constexpr int kTile = 64, kTransposeThreads = 256;
constexpr int kPack = 4;  // elements that a thread loads and stores at once
constexpr int kPacks = kTile / kPack;

struct Grid {
  Transposition t;
  Divisor across, down, extent[Transposition::kMaxOuter];
};

// The slot in the tile of pack `pack` of a column's rows. The swizzle avoids bank conflicts both
// for threads that load adjacent columns, or every fourth, and for threads that store adjacent
// packs.
__device__ inline int slot(int column, int pack) {
  return column * kPacks + (pack ^ ((column ^ column >> 2) & (kPacks - 1)));
}

template <typename From, typename To, bool kWide>
__global__ void __launch_bounds__(kTransposeThreads) transpose(Grid g, const From* from, To* to) {
  __shared__ __align__(32) unsigned char memory[kTile * kTile * sizeof(To)];
  auto* const tile = reinterpret_cast<Pack<To, kPack>*>(memory);
  uint32_t block = blockIdx.x, column0 = block;
  block = g.across.split(column0);
  uint32_t row0 = block;
  block = g.down.split(row0);
#pragma unroll
  for (int i = Transposition::kMaxOuter - 1; i >= 0; --i) {
    uint32_t at = block;
    block = g.extent[i].split(at);
    from += at * g.t.from[i];
    to += at * g.t.to[i];
  }
  const int rows = static_cast<int>(min(g.t.rows - row0 * int64_t{kTile}, int64_t{kTile}));
  const int columns = static_cast<int>(min(g.t.columns - column0 * int64_t{kTile}, int64_t{kTile}));
  from += row0 * kTile * g.t.from_row + column0 * kTile;
  to += column0 * kTile * g.t.to_column + row0 * kTile;
  const int thread = static_cast<int>(threadIdx.x);

  if constexpr (kWide) {
    const int right = thread % kPacks, down = thread / kPacks;
    Pack<From, kPack> in[kPack] = {};
#pragma unroll
    for (int r = 0; r < kPack; ++r) {
      const int row = down * kPack + r;
      if (row < rows && right * kPack < columns) {
        in[r] =
            *reinterpret_cast<const Pack<From, kPack>*>(from + row * g.t.from_row + right * kPack);
      }
    }
#pragma unroll
    for (int c = 0; c < kPack; ++c) {
      Pack<To, kPack> out;
#pragma unroll
      for (int r = 0; r < kPack; ++r) out.v[r] = static_cast<Compute<From>>(in[r].v[c]);
      tile[slot(right * kPack + c, down)] = out;
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < kTile; c += kTransposeThreads / kPacks) {
      const int column = c + down;
      if (column < columns && right * kPack < rows) {
        *reinterpret_cast<Pack<To, kPack>*>(to + column * g.t.to_column + right * kPack) =
            tile[slot(column, right)];
      }
    }
  } else {
    constexpr int kWarps = kTransposeThreads / 32, kEach = kTile / kWarps;
    const int lane = thread % 32, warp = thread / 32;
    From in[kTile / 32][kEach] = {};
#pragma unroll
    for (int half = 0; half < kTile / 32; ++half) {
#pragma unroll
      for (int r = 0; r < kEach; ++r) {
        const int row = warp * kEach + r, column = lane + half * 32;
        if (row < rows && column < columns) in[half][r] = from[row * g.t.from_row + column];
      }
    }
#pragma unroll
    for (int half = 0; half < kTile / 32; ++half) {
#pragma unroll
      for (int p = 0; p < kEach / kPack; ++p) {
        Pack<To, kPack> out;
#pragma unroll
        for (int r = 0; r < kPack; ++r)
          out.v[r] = static_cast<Compute<From>>(in[half][p * kPack + r]);
        tile[slot(lane + half * 32, warp * (kEach / kPack) + p)] = out;
      }
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < kTile; c += kWarps) {
#pragma unroll
      for (int half = 0; half < kTile / 32; ++half) {
        const int column = c + warp, row = lane + half * 32;
        if (column < columns && row < rows)
          to[column * g.t.to_column + row] = tile[slot(column, row / kPack)].v[row % kPack];
      }
    }
  }
}

}  // namespace transposing

// Returns false, and writes nothing, where there are too many tiles for one kernel.
template <typename From, typename To>
bool transpose_tiles(const Gpu& gpu, const Transposition& t, const From* from, To* to) {
  using namespace transposing;
  const int64_t across = ceil_div(t.columns, kTile), down = ceil_div(t.rows, kTile);
  const int64_t blocks = across * down * t.matrices();
  if (blocks >= Divisor::kMax) return false;
  Grid grid{t, Divisor(across), Divisor(down), {}};
  for (int i = 0; i < Transposition::kMaxOuter; ++i) grid.extent[i] = Divisor(t.extent[i]);
  const bool wide = t.in_packs(kPack) &&
                    reinterpret_cast<uintptr_t>(from) % (kPack * sizeof(From)) == 0 &&
                    reinterpret_cast<uintptr_t>(to) % (kPack * sizeof(To)) == 0;
  const auto kernel = wide ? transpose<From, To, true> : transpose<From, To, false>;
  launch(gpu, kernel, {static_cast<unsigned>(blocks), kTransposeThreads}, grid, from, to);
  return true;
}

}  // namespace crema

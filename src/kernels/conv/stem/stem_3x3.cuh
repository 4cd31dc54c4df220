// The parameters and loads of the kernels of stem_3x3_gpu.cu: a 3x3 convolution of an image of up
// to four channels. A warp copies the pixels under a tile, 16 adjacent positions, into its own part
// of shared memory, some tiles ahead; it shares nothing with other warps and waits for none.
#pragma once

#include "base/host_device.h"
#include "kernels/conv/conv.h"
#include "kernels/core/divisor.h"
#include "kernels/core/mma.cuh"

namespace crema {

constexpr int kStem3x3Kernel = 3;    // rows and columns
constexpr int kStem3x3Outputs = 64;  // per thread block
constexpr int kStem3x3Positions = 16;
// Elements of an output's sums in the weight gradient: four pixels for each row of the kernel. The
// fourth is not part of the kernel; the first row's holds the bias gradient, at kStem3x3Ones.
constexpr int kStem3x3Depth = kStem3x3Kernel * 4 * 4, kStem3x3Ones = 12;

struct Stem3x3Params {
  int images, height, width, channels;  // of x in memory: 4, or 8 of which the last 4 are not read
  int out_height, out_width, outputs;
  int top, left;  // padding before the image
  int tiles;      // in total
  Divisor by_row, by_height;

  explicit Stem3x3Params(const ConvCase& c);
};

// Pixels in shared memory: entries of two adjacent pixels, 16 bytes, each a matrix row for
// ldmatrix. The window of position p has its first two pixels in entry p and its third as the first
// of entry p + kThird.
template <int kStride>
struct Stem3x3Tile {
  static constexpr int kThird = kStride == 1 ? 2 : 1;
  static constexpr int kEntries = kStem3x3Positions + kThird;  // per row
  static constexpr int kRow = kEntries * 16;                   // bytes
  static constexpr int kBytes = kStem3x3Kernel * kRow;
};

#ifdef __CUDACC__

// Starts copying a tile's pixels; zeros outside of the image (nothing is read there).
template <int kStride, typename T>
__device__ void load_pixels(const Stem3x3Params& n, const T* x, int tile, uint32_t to) {
  using Tile = Stem3x3Tile<kStride>;
  constexpr int kInRow = Tile::kEntries * 2, kPieces = kStem3x3Kernel * kInRow;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int column, top;
  const int image = n.by_height.split(n.by_row.split(tile, column), top);
  top = top * kStride - n.top;
  const int left = column * kStem3x3Positions * kStride - n.left;
  const int from = ((image * n.height + top) * n.width + left) * n.channels;
#pragma unroll
  for (int i = 0; i < (kPieces + 31) / 32; ++i) {
    const int at = i * 32 + lane;
    const int row = at / kInRow, pixel = at % kInRow / 2 * kStride + at % 2;
    const bool inside = static_cast<unsigned>(top + row) < static_cast<unsigned>(n.height) &&
                        static_cast<unsigned>(left + pixel) < static_cast<unsigned>(n.width);
    if (at < kPieces)
      copy_async<8>(to + at * 8, x + (from + (row * n.width + pixel) * n.channels), inside);
  }
}

// Starts copying a tile of dy or y: one row of shared memory per position, its 16-byte chunks
// swizzled so that ldmatrix has no bank conflicts.
template <typename T>
__device__ void load_positions(const Stem3x3Params& n, const T* from, int first_output, int tile,
                               uint32_t to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int column;
  const int row = n.by_row.split(tile, column);
  column = column * kStem3x3Positions + lane / 8;
  const int64_t position = row * n.out_width + column;
  from += position * n.outputs + first_output + lane % 8 * 8;
#pragma unroll
  for (int i = 0; i < kStem3x3Positions / 4; ++i) {
    const int down = i * 4 + lane / 8;
    copy_async<16>(to + down * kStem3x3Outputs * 2 + (lane % 8 ^ down % 8) * 16,
                   from + i * 4 * n.outputs, column + i * 4 < n.out_width);
  }
}

// Loops over this warp's tiles: load(tile, slot) runs kStages - 1 tiles ahead of compute(tile,
// slot).
template <int kStages, typename Load, typename Compute>
__device__ void for_tiles(int tiles, const Load& load, const Compute& compute) {
  const int warps = static_cast<int>(blockDim.x) / 32, hop = static_cast<int>(gridDim.x) * warps;
  int tile = static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / 32;
  const auto start = [&](int next, int slot) {
    if (next < tiles) load(next, slot);
    end_copies();
  };
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) start(tile + i * hop, i);
  for (int slot = 0; tile < tiles; tile += hop) {
    start(tile + (kStages - 1) * hop, slot == 0 ? kStages - 1 : slot - 1);
    wait_for_copies<kStages - 1>();
    __syncwarp();
    compute(tile, slot);
    __syncwarp();  // before it, the slot is still in use
    slot = slot == kStages - 1 ? 0 : slot + 1;
  }
}

#endif

}  // namespace crema

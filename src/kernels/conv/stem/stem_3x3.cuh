// How the kernels of stem_3x3_gpu.cu see a 3x3 convolution of an image of up to four channels.
// A warp brings the pixels under 16 neighbouring places, a tile, into its own part of shared
// memory, some tiles ahead; it shares nothing with other warps and waits for none.
#pragma once

#include "base/host_device.h"
#include "kernels/conv/conv.h"
#include "kernels/core/mma.cuh"

namespace crema {

constexpr int kPixelsKernel = 3;    // rows and columns
constexpr int kPixelsOutputs = 64;  // that a block of threads computes
constexpr int kPixelsPlaces = 16;
// Elements of an output's sums in the gradient of the weights: for each row of the kernel four
// pixels. The fourth is no part of the kernel; the first row's has at kPixelsOnes the gradient of
// the bias.
constexpr int kPixelsDepth = kPixelsKernel * 4 * 4, kPixelsOnes = 12;

struct PixelsNumbers {
  int images, height, width, channels;  // of x in memory: 4, or 8 whose last 4 are not read
  int out_height, out_width, outputs;
  int top, left;  // zeros in front of the image
  int tiles;      // in all
  FastDivide by_row, by_height;

  explicit PixelsNumbers(const ConvCase& c);
};

// Pixels in shared memory: entries of two neighbours, 16 bytes, which is a row of a matrix for
// matrix loads. The window of place p has its first two pixels in entry p and its third as the
// first of entry p + kThird.
template <int kStride>
struct PixelsTile {
  static constexpr int kThird = kStride == 1 ? 2 : 1;
  static constexpr int kEntries = kPixelsPlaces + kThird;  // of a row
  static constexpr int kRow = kEntries * 16;               // bytes
  static constexpr int kBytes = kPixelsKernel * kRow;
};

#ifdef __CUDACC__

// Starts copying a tile's pixels, zeros where there is no image (nothing is read there).
template <int kStride, typename T>
__device__ void load_pixels(const PixelsNumbers& n, const T* x, int tile, uint32_t to) {
  using Tile = PixelsTile<kStride>;
  constexpr int kInRow = Tile::kEntries * 2, kPieces = kPixelsKernel * kInRow;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int column, top;
  const int image = n.by_height.split(n.by_row.split(tile, column), top);
  top = top * kStride - n.top;
  const int left = column * kPixelsPlaces * kStride - n.left;
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

// Starts copying a tile of dy or y: a row of shared memory for each place, its 16 bytes in an order
// that lets matrix loads meet no bank twice.
template <typename T>
__device__ void load_places(const PixelsNumbers& n, const T* from, int first_output, int tile,
                            uint32_t to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int column;
  const int row = n.by_row.split(tile, column);
  column = column * kPixelsPlaces + lane / 8;
  const int64_t place = row * n.out_width + column;
  from += place * n.outputs + first_output + lane % 8 * 8;
#pragma unroll
  for (int i = 0; i < kPixelsPlaces / 4; ++i) {
    const int down = i * 4 + lane / 8;
    copy_async<16>(to + down * kPixelsOutputs * 2 + (lane % 8 ^ down % 8) * 16,
                   from + i * 4 * n.outputs, column + i * 4 < n.out_width);
  }
}

// Goes through this warp's tiles: load(tile, slot) is kStages - 1 of them ahead of
// compute(tile, slot).
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
    __syncwarp();  // until then the slot is not free
    slot = slot == kStages - 1 ? 0 : slot + 1;
  }
}

#endif

}  // namespace crema

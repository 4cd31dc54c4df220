// Positions, boxes and loads for the GPU kernels of pooling. Coordinates are (depth, height,
// width); offsets count packs of channels and fit 32 bits.
#pragma once

#include <algorithm>

#include "base/ceil_div.h"
#include "device/multiprocessors.h"
#include "kernels/pool/pool_geometry.h"

namespace crema::pooling {

// Positions [begin, end) along each axis.
struct Box {
  int begin[3], end[3];
};

// The first position of an output's unclipped window; in the padding it is outside the image.
struct Corner {
  int at[3];
};

// PoolGeometry with 32-bit integers.
struct Geometry32 {
  int in[3], out[3], kernel[3], stride[3], pad[3];
  int packs, images;
  bool count_padding;

  Geometry32(const PoolGeometry& g, int pack)
      : packs(static_cast<int>(g.channels / pack)),
        images(static_cast<int>(g.images)),
        count_padding(g.count_padding) {
    for (int a = 0; a < 3; ++a) {
      in[a] = static_cast<int>(g.in[a]);
      out[a] = static_cast<int>(g.out[a]);
      kernel[a] = static_cast<int>(g.kernel[a]);
      stride[a] = static_cast<int>(g.stride[a]);
      pad[a] = static_cast<int>(g.pad[a]);
    }
  }

  __device__ Corner corner_of(const int (&o)[3]) const {
    Corner corner;
#pragma unroll
    for (int a = 0; a < 3; ++a) corner.at[a] = o[a] * stride[a] - pad[a];
    return corner;
  }
  __device__ int cell(int d, int h, int w) const { return (d * kernel[1] + h) * kernel[2] + w; }

  // 1 / PoolGeometry::divisor.
  __device__ float inverse_divisor(int d, int h, int w) const {
    const int o[3] = {d, h, w};
    int counted = 1;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const int begin = o[a] * stride[a] - pad[a];
      counted *= max(0, counted_cells(begin, kernel[a], in[a], pad[a], count_padding));
    }
    return 1.f / static_cast<float>(max(counted, 1));
  }

  // Inputs in an output's window.
  __device__ Box cells_of(const int (&o)[3]) const {
    Box box;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const int begin = o[a] * stride[a] - pad[a];
      box.begin[a] = max(begin, 0);
      box.end[a] = min(begin + kernel[a], in[a]);
    }
    return box;
  }
  // Outputs whose windows contain input i.
  __device__ Box windows_of(const int (&i)[3]) const {
    Box box;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const int before = i[a] + pad[a] - kernel[a], end = i[a] + pad[a];
      box.begin[a] = before < 0 ? 0 : before / stride[a] + 1;
      box.end[a] = min(end / stride[a] + 1, out[a]);
    }
    return box;
  }
};

// How the output positions are tiled: `groups` of packs, blocks `across` and `down`, with threads
// for (packs, columns, `rows_each` rows each).
struct Tiles {
  int extent[3];
  int groups, across, down;
};

struct Launch {
  Tiles tiles;
  dim3 threads;
  unsigned blocks;

  // extent: of the tensor to write; a thread writes `rows_each` rows of it.
  Launch(const Geometry32& g, const int* extent, int rows_each) {
    // Whole cache lines of channels, then a square of neighboring positions; blocks are balanced,
    // the last one included.
    const int lanes = g.packs <= 16 ? g.packs : 8;
    const int columns = extent[2], rows = ceil_div(extent[1], rows_each);
    // When all threads fit on the GPU at once, use small blocks: they find room next to the blocks
    // of weight gradient kernels, which are queued earlier and leave few registers.
    const int64_t all = int64_t{g.packs} * columns * rows * g.images * extent[0];
    const int maximum = all < kTypicalMultiprocessors * 1024 ? 128 : 256;
    std::copy_n(extent, 3, tiles.extent);
    tiles.groups = ceil_div(g.packs, lanes);
    tiles.across = ceil_div(columns, lanes <= 8 ? 8 : 4);
    const int wide = ceil_div(columns, tiles.across);
    tiles.down = ceil_div(rows, std::min(std::max(maximum / (lanes * wide), 1), 64));
    threads = dim3(lanes, wide, ceil_div(rows, tiles.down));
    blocks = static_cast<unsigned>(tiles.groups) * tiles.across * tiles.down * g.images * extent[0];
  }
};

// What a thread writes: its pack, its image, and its first position.
struct Position {
  int packs, pack, image, at[3];
  bool inside;

  __device__ Position(const Geometry32& g, const Tiles& tiles, int rows_each) {
    packs = g.packs;
    unsigned block = blockIdx.x;
    const unsigned group = block % tiles.groups;
    block /= tiles.groups;
    const unsigned across = block % tiles.across;
    block /= tiles.across;
    const unsigned down = block % tiles.down;
    const int plane = static_cast<int>(block / tiles.down);
    at[0] = tiles.extent[0] == 1 ? 0 : plane % tiles.extent[0];
    image = tiles.extent[0] == 1 ? plane : plane / tiles.extent[0];
    pack = static_cast<int>(group * blockDim.x + threadIdx.x);
    at[2] = static_cast<int>(across * blockDim.y + threadIdx.y);
    at[1] = static_cast<int>(down * blockDim.z + threadIdx.z) * rows_each;
    inside = pack < g.packs && at[1] < tiles.extent[1] && at[2] < tiles.extent[2];
  }
  // Offset of this pack at a position of the same image.
  __device__ int offset(const int (&extent)[3], int d, int h, int w) const {
    return (((image * extent[0] + d) * extent[1] + h) * extent[2] + w) * packs + pack;
  }
};

// Calls use(load(offset), d, h, w) for the positions in a box of a source with this extent, in
// row-major order; kAtOnce positions of a row are loaded before the first is used.
template <int kAtOnce, typename Load, typename Use>
__device__ void over_box(const Position& position, const int (&extent)[3], const Box& box,
                         const Load& load, const Use& use) {
  for (int d = box.begin[0]; d < box.end[0]; ++d) {
    for (int h = box.begin[1]; h < box.end[1]; ++h) {
      for (int w = box.begin[2]; w < box.end[2]; w += kAtOnce) {
        const int at = position.offset(extent, d, h, w);
        decltype(load(0)) loaded[kAtOnce];
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c) {
          if (w + c < box.end[2]) loaded[c] = load(at + c * position.packs);
        }
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c) {
          if (w + c < box.end[2]) use(loaded[c], d, h, w + c);
        }
      }
    }
  }
}

}  // namespace crema::pooling

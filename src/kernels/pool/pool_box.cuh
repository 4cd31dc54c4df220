// Positions, windows and loads for the GPU kernels of pooling. Coordinates are (depth, height,
// width); offsets count packs of channels and fit 32 bits.
#pragma once

#include <algorithm>

#include "kernels/pool/pool_geometry.h"

namespace crema::pooling {

struct Box {
  int first[3], last[3];
};

// The first position of an output's unclipped window; in the padding it is outside the image.
struct Corner {
  int at[3];
};

// PoolGeometry with 32-bit integers.
struct Window {
  int in[3], out[3], kernel[3], stride[3], pad[3];
  int packs, images;
  bool count_padding;

  Window(const PoolGeometry& g, int pack)
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
  __device__ int cell(int d, int h, int v) const { return (d * kernel[1] + h) * kernel[2] + v; }

  // 1 / PoolGeometry::divisor.
  __device__ float share(int d, int h, int v) const {
    const int o[3] = {d, h, v};
    int counted = 1;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const int begin = o[a] * stride[a] - pad[a], end = begin + kernel[a];
      counted *= count_padding ? max(0, min(end, in[a] + pad[a]) - begin)
                               : max(0, min(end, in[a]) - max(begin, 0));
    }
    return 1.f / static_cast<float>(max(counted, 1));
  }

  // Inputs in an output's window.
  __device__ Box cells_of(const int (&o)[3]) const {
    Box box;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const int begin = o[a] * stride[a] - pad[a];
      box.first[a] = max(begin, 0);
      box.last[a] = min(begin + kernel[a], in[a]);
    }
    return box;
  }
  // Outputs whose windows contain input i.
  __device__ Box windows_of(const int (&i)[3]) const {
    Box box;
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const int before = i[a] + pad[a] - kernel[a], end = i[a] + pad[a];
      box.first[a] = before < 0 ? 0 : before / stride[a] + 1;
      box.last[a] = min(end / stride[a] + 1, out[a]);
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
  Launch(const Window& w, const int* extent, int rows_each) {
    const auto pieces = [](int count, int maximum) { return (count + maximum - 1) / maximum; };
    // Whole cache lines of channels, then a square of neighboring positions; blocks are balanced,
    // the last one included.
    const int lanes = w.packs <= 16 ? w.packs : 8;
    const int columns = extent[2], rows = pieces(extent[1], rows_each);
    // When all threads fit on the GPU at once, use small blocks: they find room next to the blocks
    // of weight gradient kernels, which are queued earlier and leave few registers.
    const int64_t all = int64_t{w.packs} * columns * rows * w.images * extent[0];
    const int maximum = all < 132 * 1024 ? 128 : 256;
    std::copy_n(extent, 3, tiles.extent);
    tiles.groups = pieces(w.packs, lanes);
    tiles.across = pieces(columns, lanes <= 8 ? 8 : 4);
    const int wide = pieces(columns, tiles.across);
    tiles.down = pieces(rows, std::min(std::max(maximum / (lanes * wide), 1), 64));
    threads = dim3(lanes, wide, pieces(rows, tiles.down));
    blocks = static_cast<unsigned>(tiles.groups) * tiles.across * tiles.down * w.images * extent[0];
  }
};

// What a thread writes: its pack, its image, and its first position.
struct Position {
  int packs, pack, image, at[3];
  bool inside;

  __device__ Position(const Window& w, const Tiles& tiles, int rows_each) {
    packs = w.packs;
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
    inside = pack < w.packs && at[1] < tiles.extent[1] && at[2] < tiles.extent[2];
  }
  // Offset of this pack at a position of the same image.
  __device__ int offset(const int (&extent)[3], int d, int h, int v) const {
    return (((image * extent[0] + d) * extent[1] + h) * extent[2] + v) * packs + pack;
  }
};

// Calls use(load(offset), d, h, v) for the positions in a box of a source with this extent, in
// row-major order; kAtOnce positions of a row are loaded before the first is used.
template <int kAtOnce, typename Load, typename Use>
__device__ void over_box(const Position& position, const int (&extent)[3], const Box& box,
                         const Load& load, const Use& use) {
  for (int d = box.first[0]; d < box.last[0]; ++d) {
    for (int h = box.first[1]; h < box.last[1]; ++h) {
      for (int v = box.first[2]; v < box.last[2]; v += kAtOnce) {
        const int at = position.offset(extent, d, h, v);
        decltype(load(0)) loaded[kAtOnce];
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c) {
          if (v + c < box.last[2]) loaded[c] = load(at + c * position.packs);
        }
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c) {
          if (v + c < box.last[2]) use(loaded[c], d, h, v + c);
        }
      }
    }
  }
}

}  // namespace crema::pooling

// How the kernels of conv_depthwise_gpu.cu and conv_depthwise_weights_gpu.cu divide a depthwise
// convolution. A thread has four channels of a small tile of places. A block has a few neighbouring
// channels (a memory line) and walks over patches of tiles, whose places it brings into shared
// memory one patch ahead. Places of a dilated convolution that are `dilation` apart never meet the
// others: each of the dilation * dilation sets is an image of its own, a sheet.
#pragma once

#include <algorithm>

#include "device/gpu.h"
#include "kernels/conv.h"
#include "kernels/mma.cuh"
#include "kernels/pack.h"

namespace crema {

constexpr int kDepthwisePack = 4;    // channels of a thread
constexpr int kDepthwiseTiles = 16;  // of a block, at most
constexpr int kDepthwiseLine = 128;  // bytes of a place in shared memory
// Threads side by side along the channels, and of a block, at most.
template <typename T>
constexpr int kDepthwiseLanes = kDepthwiseLine / (kDepthwisePack * static_cast<int>(sizeof(T)));
template <typename T>
constexpr int kDepthwiseThreads = kDepthwiseLanes<T>* kDepthwiseTiles;

// The places of an image that a patch needs.
struct DepthwiseRegion {
  int height, width;  // of the image
  int top, left;      // from the patch's first place to the region's, backwards
  int stride;
  int rows, columns;  // of a sheet
  FastDivide by_rows;
  int bytes;  // of all sheets
};

struct DepthwiseNumbers {
  int channels, dilation;
  int out_height, out_width;  // of what tiles are cut from
  int lanes, cuts;            // threads along the channels, and blocks
  int tile_height, tile_width;
  // The block's tiles: patch_width * patch_height of each of patch_sheets sheets.
  int patch_width, patch_height, patch_sheets;
  int patches_across, sheets, work;  // of all; work: patches of all groups of sheets
  FastDivide by_lanes, by_patch_width, by_patch_height, by_patches_across, by_patches, by_phases,
      by_dilation, by_chunks;
  DepthwiseRegion in, out;

  dim3 threads() const { return dim3(static_cast<unsigned>(lanes * kDepthwiseTiles)); }
  // At most `blocks` walk over the patches of a piece of the channels.
  dim3 grid(int blocks) const {
    return dim3(static_cast<unsigned>(cuts),
                static_cast<unsigned>(std::min(work, std::max(1, blocks / cuts))));
  }
};

// Tiles of the images of `out`, through windows on those of `in`.
struct DepthwiseWindow {
  int64_t kernel, stride, dilation, top, left;
  int tile_height, tile_width;
  int spread = 1;  // places of a tile, along an axis, for each place of `in`
};
DepthwiseNumbers depthwise_numbers(const Shape& in, const Shape& out, DType dtype,
                                   const DepthwiseWindow& window);
constexpr int kMultiprocessors = 132;  // of a large card
constexpr int kDepthwiseBlocks = 2 * kMultiprocessors;

// How a place of y ends.
struct DepthwiseEnd {
  bool relu;
  float slope;
};

// dw and db from x and dy, by blocks that leave their sums in `parts` and a kernel that adds these.
struct DepthwiseSums {
  const void *x, *dy;
  float *dw, *db, *parts;  // db: or null
  bool accumulate_w, accumulate_b;
};
// Floats of parts.
int64_t depthwise_parts(const DepthwiseNumbers& n, int64_t kernel);
DepthwiseNumbers depthwise_weights_numbers(const ConvCase& c);
void start_depthwise_weights(const Gpu& gpu, const DepthwiseNumbers& n, DType dtype, int kernel,
                             int stride, const DepthwiseSums& sums);
// dw and db from `count` parts of (taps + 1) * channels floats, the last row of each for db.
void add_depthwise_parts(const Gpu& gpu, int channels, int taps, int count,
                         const DepthwiseSums& sums);

#ifdef __CUDACC__

// The block's patch: which sheets, and its first place in a sheet.
struct DepthwisePatch {
  int first_sheet, row, column;

  __device__ DepthwisePatch(const DepthwiseNumbers& n, int item) {
    int patch, across;
    first_sheet = n.by_patches.split(item, patch) * n.patch_sheets;
    row = n.by_patches_across.split(patch, across) * n.patch_height * n.tile_height;
    column = across * n.patch_width * n.tile_width;
  }
};

// A sheet: its image, and where in that its place (0, 0) is.
struct DepthwiseSheet {
  int image, row, column;

  __device__ DepthwiseSheet(const DepthwiseNumbers& n, int sheet) {
    int phase;
    image = n.by_phases.split(sheet, phase);
    row = n.by_dilation.split(phase, column);
  }
};

// Starts copying a patch's region, zeros where there is no image. A warp has a row at a time.
template <typename T>
__device__ void load_region(const DepthwiseNumbers& n, const DepthwiseRegion& region, const T* data,
                            const DepthwisePatch& patch, uint32_t to) {
  constexpr int kChunk = 16 / static_cast<int>(sizeof(T));
  const int first = static_cast<int>(blockIdx.x) * n.lanes * kDepthwisePack;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int chunks = static_cast<int>(n.by_chunks.divisor);
  for (int line = warp; line < region.rows * n.patch_sheets;
       line += static_cast<int>(blockDim.x) / 32) {
    int row;
    const int sheet = patch.first_sheet + region.by_rows.split(line, row);
    const DepthwiseSheet in(n, sheet);
    const int y = (in.row + patch.row * n.dilation) * region.stride - region.top + row * n.dilation;
    const int left = (in.column + patch.column * n.dilation) * region.stride - region.left;
    const bool here = sheet < n.sheets && y >= 0 && y < region.height;
    const T* const from =
        data +
        ((static_cast<int64_t>(in.image) * region.height + y) * region.width + left) * n.channels;
    const uint32_t goal = to + line * region.columns * kDepthwiseLine;
    for (int at = lane; at < region.columns * chunks; at += 32) {
      int chunk;
      const int column = n.by_chunks.split(at, chunk), x = left + column * n.dilation;
      const int channel = first + chunk * kChunk;
      const bool inside = here && x >= 0 && x < region.width && channel < n.channels;
      copy_async<16>(goal + column * kDepthwiseLine + chunk * 16,
                     inside ? from + column * n.dilation * n.channels + channel : data, inside);
    }
  }
}

// This thread's tile: its channels and where it lies in the patch.
struct DepthwiseTile {
  int lane, sheet, row, column;
  bool inside;  // the patch

  __device__ explicit DepthwiseTile(const DepthwiseNumbers& n) {
    const int tile = n.by_lanes.split(static_cast<int>(threadIdx.x), lane);
    int across, down;
    const int rest = n.by_patch_width.split(tile, across);
    sheet = n.by_patch_height.split(rest, down);
    row = down * n.tile_height, column = across * n.tile_width;
    inside = sheet < n.patch_sheets;
  }
  // From the start of a region in shared memory to what the tile's first place needs, in bytes.
  template <typename T>
  __device__ int place_in(const DepthwiseRegion& region) const {
    const int first =
        (sheet * region.rows + row * region.stride) * region.columns + column * region.stride;
    return first * kDepthwiseLine + lane * kDepthwisePack * static_cast<int>(sizeof(T));
  }
};

template <typename T>
__device__ void load_place(const unsigned char* shared, float (&to)[kDepthwisePack]) {
  const auto pack = *reinterpret_cast<const Pack<T, kDepthwisePack>*>(shared);
#pragma unroll
  for (int k = 0; k < kDepthwisePack; ++k) to[k] = static_cast<float>(pack.v[k]);
}

// Calls load(patch, stage) for all patches of the block and compute(patch, stage) once each has
// arrived; two stages of shared memory take turns.
template <typename Load, typename Compute>
__device__ void over_patches(const DepthwiseNumbers& n, const Load& load, const Compute& compute) {
  const auto start = [&](int item, int stage) {
    if (item < n.work) load(DepthwisePatch(n, item), stage);
    end_copies();
  };
  int stage = 0;
  start(static_cast<int>(blockIdx.y), 0);
  for (int item = static_cast<int>(blockIdx.y); item < n.work;
       item += static_cast<int>(gridDim.y)) {
    start(item + static_cast<int>(gridDim.y), stage ^ 1);
    wait_for_copies<1>();
    __syncthreads();
    compute(DepthwisePatch(n, item), stage);
    __syncthreads();
    stage ^= 1;
  }
}

#endif

}  // namespace crema

// What the kernels of direct_conv_gpu.cu and direct_conv_wgrad_gpu.cu share: their parameters, and
// loading images into shared memory.
#pragma once

#include "kernels/conv/implicit_gemm/direct_conv.h"
#include "kernels/core/divisor.h"
#include "kernels/core/mma.cuh"

namespace crema {

// A tensor in shared memory: bytes from one row, and one pixel, to the next. The pixel pitch is an
// odd multiple of 16 bytes, so that ldmatrix has no bank conflicts.
struct DirectConvTile {
  int rows, columns;
  int chunks;  // of 8 channels per pixel
  int row, pixel;
  Divisor by_chunks;
};

struct DirectConvImage {
  int height, width, channels;
  int vector;  // channels per copy
  int step;    // elements from one image to the next
};

// Coordinates are pairs of row and column.
struct DirectConvWindows {
  DirectConvImage image;  // the windows are in x, or in dy for dgrad
  int positions[2];       // number of windows along each axis
  int origin[2];          // a position's window starts at origin + position * step
  int step[2];
  int tap[2], first_tap[2];  // tap t is at first_tap + t * tap in the window
  int taps, kernel_width;
  // A strip is what a block computes at a time: strip_rows rows of positions of one image.
  int strip_rows, strips_per_image, strip_count;
  Divisor by_columns, by_strips;  // positions per row; strips per image
};

// How the warps of a block divide the product.
struct DirectConvTiling {
  int warps_m, warps_n, slices;
  int k_chunks;  // chunks of 8 of k = (tap, channel): of the reduction, or of wgrad's columns
  int columns, columns_per_block;  // of the result; not for wgrad
  DirectConvImage second;          // w as an image of outputs x taps, or dy for wgrad
  DirectConvTile image_tile, second_tile;
};

// A 2 x 2 max pooling (direct_conv_pool.cuh): forward's result, and dy, have an element for each
// pool window.
struct DirectConvPool {
  int extent[2];  // pool windows along each axis; 0: no pooling
  Divisor by_columns;
  int positions[2];  // of the convolution; the last pool windows may extend past them
  // Pool windows per row of the tile that holds dy, times its chunks.
  int slots;
  Divisor by_slots;
  int quads, whole;  // DropoutLayout's quads, and how many of them have four channels
  Divisor by_quads, by_whole;
};

// Shared memory, in bytes. It starts with a table of offsets; the stages come last.
struct DirectConvLayout {
  int w_at;        // not for wgrad
  int dy_at;       // for wgrad, in a stage
  int relu_y_at;   // in a stage
  int dropout_at;  // in a stage: bits of a strip's pool windows, the four of a draw in one byte
  int stage, stages, stages_at;
  int slices_at;   // where slices other than the first write their sums, after the stages
  int tile_pitch;  // floats per row of a block's tile of sums
  int bytes;       // in total
};

struct DirectConvGrid {
  int blocks, column_blocks;  // along the strips, and along the result's columns
  int threads;
  int cluster;  // blocks per cluster
};

struct DirectConvOperands {
  const void *image, *second;
  const void* relu_y;  // with the layout of dy; null: no ReLU
  const void* bias;
  void* out;
  float* db;
  uint8_t* argmax;
  DropoutMask dropout;
  int64_t dropout_first_image;  // DropoutLayout's
  bool accumulate_w, accumulate_b, relu;
  bool adds;  // blocks add their sums to dw and db, in any order
  float gradient_factor;
  float* partial_sums;
  unsigned* counters;
};

// How dy reaches the kernel: as it is; masked by y of the ReLU; or unpooled through argmax, which
// includes the ReLU. For fprop: pool, or none (the ReLU is a flag).
enum class FusedOp { none, relu, pool };

struct DirectConvParams {
  DirectConvWindows windows;    // set by windows_of()
  DirectConvTiling tiling;      // position_tiling() or wgrad_tiling()
  DirectConvPool pool;          // pool_of()
  DirectConvLayout layout;      // shared_layout()
  DirectConvGrid grid;          // DirectConv::grid()
  DirectConvOperands operands;  // DirectConv::run()
};

#ifdef __CUDACC__

__device__ inline void store_zeros(uint32_t to) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(to), "r"(0));
}

// For all 16-byte slots of the tile that this thread loads: calls start(column, chunk), then
// body(row, slot's offset) for each row. A thread keeps its column as long as it can.
template <typename Start, typename Body>
__device__ void for_slots(const DirectConvTile& tile, const Start& start, const Body& body) {
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const int slots = tile.columns * tile.chunks;
  int first_slot = thread, first_row = 0, hop = 1;
  if (slots < threads) {
    hop = threads / slots;
    first_row = thread / slots;
    first_slot = first_row < hop ? thread - first_row * slots : slots;
  }
  for (int slot = first_slot; slot < slots; slot += threads) {
    int chunk;
    const int column = tile.by_chunks.split(slot, chunk);
    start(column, chunk);
    const int at = column * tile.pixel + chunk * 16;
#pragma unroll 4
    for (int row = first_row; row < tile.rows; row += hop) body(row, row * tile.row + at);
  }
}

// Loads pixels from (first_row, first_column) on; zeros outside of the image and past its channels.
template <typename T>
__device__ void load_tile(const DirectConvImage& image, const void* data, int image_index,
                          int first_row, int first_column, const DirectConvTile& tile,
                          uint32_t to) {
  const T* const from =
      static_cast<const T*>(data) + static_cast<int64_t>(image_index) * image.step;
  with_vector(image.vector, [&]<int kVector>() {
    const T* column_from = from;
    int pieces = 0;  // inside the image if the row is
    for_slots(
        tile,
        [&](int column, int chunk) {
          const int x = first_column + column;
          const bool there = static_cast<unsigned>(x) < static_cast<unsigned>(image.width);
          pieces = there ? min(8, image.channels - chunk * 8) : 0;
          column_from = from + (there ? x * image.channels + chunk * 8 : 0);
        },
        [&](int row, int slot) {
          const int y = first_row + row;
          const bool there = static_cast<unsigned>(y) < static_cast<unsigned>(image.height);
          const T* const row_from = column_from + (there ? y * image.width * image.channels : 0);
#pragma unroll
          for (int piece = 0; piece < 8; piece += kVector) {
            const bool wanted = there && piece < pieces;
            copy_async<kVector * 2>(to + slot + piece * 2, row_from + (wanted ? piece : 0), wanted);
          }
        });
  });
}

// Masks dy with y of the ReLU: this thread's own slots, both loaded.
__device__ inline void mask_tile(const DirectConvTile& tile, uint32_t dy, uint32_t relu_y) {
  for_slots(
      tile, [](int, int) {},
      [&](int, int slot) {
        uint32_t g[4], y[4];
        asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(g[0]), "=r"(g[1]), "=r"(g[2]), "=r"(g[3])
                     : "r"(dy + slot));
        asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
                     : "r"(relu_y + slot));
#pragma unroll
        for (int i = 0; i < 4; ++i) g[i] = where_positive(g[i], y[i]);
        asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(dy + slot), "r"(g[0]), "r"(g[1]),
                     "r"(g[2]), "r"(g[3]));
      });
}

// The byte offset from a window's start of chunk k: chunk k % chunks of tap k / chunks.
__device__ inline int chunk_byte_offset(const DirectConvParams& n, int k) {
  const DirectConvWindows& windows = n.windows;
  const DirectConvTile& tile = n.tiling.image_tile;
  int chunk;
  const int tap = tile.by_chunks.split(k, chunk);
  const int row = tap / windows.kernel_width, column = tap % windows.kernel_width;
  return (windows.first_tap[0] + row * windows.tap[0]) * tile.row +
         (windows.first_tap[1] + column * windows.tap[1]) * tile.pixel + chunk * 16;
}

// The byte offset of the window at a row and column of the strip.
__device__ inline int window_byte_offset(const DirectConvParams& n, int row, int column) {
  return row * n.windows.step[0] * n.tiling.image_tile.row +
         column * n.windows.step[1] * n.tiling.image_tile.pixel;
}

// The same by the position's index in the strip; the last one's for later positions.
__device__ inline int window_byte_offset(const DirectConvParams& n, int position) {
  const DirectConvWindows& windows = n.windows;
  int column;
  const int row = windows.by_columns.split(
      min(position, windows.strip_rows * windows.positions[1] - 1), column);
  return window_byte_offset(n, row, column);
}

// Loops over the strips of this block, double-buffered: load(strip, stage's address), then
// compute(strip, stage's address) when this block's copies have arrived. The next strip loads
// during compute.
template <typename Load, typename Mask, typename Compute>
__device__ void for_strips(const DirectConvParams& n, uint32_t memory, const Load& load,
                           const Mask& mask, const Compute& compute) {
  const uint32_t stages = memory + n.layout.stages_at;
  const int hop = static_cast<int>(gridDim.x), count = n.windows.strip_count;
  int strip = static_cast<int>(blockIdx.x);
  if (strip < count) load(strip, stages);
  end_copies();
  for (int turn = 0; strip < count; strip += hop, turn ^= 1) {
    if (strip + hop < count) load(strip + hop, stages + (turn ^ 1) * n.layout.stage);
    end_copies();
    wait_for_copies<1>();
    mask(stages + turn * n.layout.stage);
    __syncthreads();
    compute(strip, stages + turn * n.layout.stage);
    __syncthreads();
  }
}

#endif

}  // namespace crema

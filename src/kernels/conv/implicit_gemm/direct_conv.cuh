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
  int at;  // from the start of a stage, or of all shared memory
  int rows, columns;
  int chunks;  // of 8 channels per pixel
  int row, pixel;
  Divisor by_chunks;
};

struct DirectConvImage {
  const void* data;
  int height, width, channels;
  int vector;  // channels per copy
  int step;    // elements from one image to the next
};

// For a case with pooling (direct_conv_pool.cuh): forward's result, and dy, consist of cells of 2 x
// 2 positions.
struct DirectConvPool {
  uint8_t* kept;
  int cells[2];  // rows and columns of cells
  Divisor by_row;
  int positions[2];  // of the convolution; the last cells may extend past them
  // Cells per row of the tile that holds dy, times its chunks.
  int slots;
  Divisor by_slots;
  // Dropout bits of a strip's cells, the four of a draw in one byte.
  DropoutMask dropout;
  int rng_at;        // in a stage
  int quads, whole;  // quads, and how many of them have four channels
  Divisor by_quads, by_whole;
};

// What follows the convolution: nothing of which a kernel computes the gradient, a ReLU whose sign
// it reads, or a pooling, whose kept positions include the ReLU.
enum class FusedOp { none, relu, pool };

// All coordinates are pairs of row and column.
struct DirectConvParams {
  DirectConvImage image;  // the image of the windows: x, or dy for dgrad
  DirectConvImage other;  // w as an image of outputs x taps, or dy for wgrad
  const void* sign;       // y, with the layout of dy
  const void* bias;
  void* out;
  float* db;
  bool accumulate_w, accumulate_b, relu;
  int positions[2];  // number of windows along each axis
  int origin[2];     // a position's window starts at origin + position * step
  int step[2];
  int tap[2], first_tap[2];  // tap t is at first_tap + t * tap in the window
  int taps, kernel_width;
  int columns;                      // of the result
  int columns_each;                 // per block, for forward
  int strip, strips, units;         // rows of positions per unit; strips per image; in total
  Divisor by_strips, by_positions;  // by_positions: positions per row
  DirectConvTile image_tile, other_tile;
  int sign_at;  // offset of y in a stage
  int tables;   // offset of the tables of offsets
  int stage, stages, stages_at;
  int entries;  // chunks of 8 of the reduction, or of the result's columns
  int warps_m, warps_n, slices;
  int slices_at;        // where slices other than the first write their sums, after the stages
  int tile_pitch;       // floats per row of a block's tile of sums
  int blocks, cluster;  // blocks, and blocks per cluster
  bool adds;            // blocks add their sums to dw and db, in any order
  float* parts;
  unsigned* counters;
  int shared_bytes;
  float factor;  // multiplies the gradients
  DirectConvPool pool;
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
__device__ void load_tile(const DirectConvImage& image, const void* data, int number, int first_row,
                          int first_column, const DirectConvTile& tile, uint32_t to) {
  const T* const from = static_cast<const T*>(data) + static_cast<int64_t>(number) * image.step;
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

// Masks dy with the sign of y (ReLU): this thread's own slots, both loaded.
__device__ inline void mask_tile(const DirectConvTile& tile, uint32_t dy, uint32_t y) {
  for_slots(
      tile, [](int, int) {},
      [&](int, int slot) {
        uint32_t g[4], sign[4];
        asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(g[0]), "=r"(g[1]), "=r"(g[2]), "=r"(g[3])
                     : "r"(dy + slot));
        asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(sign[0]), "=r"(sign[1]), "=r"(sign[2]), "=r"(sign[3])
                     : "r"(y + slot));
#pragma unroll
        for (int i = 0; i < 4; ++i) g[i] = where_positive(g[i], sign[i]);
        asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(dy + slot), "r"(g[0]), "r"(g[1]),
                     "r"(g[2]), "r"(g[3]));
      });
}

// The offset from a window's start of entry e: chunk e % chunks of tap e / chunks.
__device__ inline int window_entry(const DirectConvParams& n, int entry) {
  int chunk;
  const int tap = n.image_tile.by_chunks.split(entry, chunk);
  const int row = tap / n.kernel_width, column = tap % n.kernel_width;
  return (n.first_tap[0] + row * n.tap[0]) * n.image_tile.row +
         (n.first_tap[1] + column * n.tap[1]) * n.image_tile.pixel + chunk * 16;
}

// The offset of the window of a position of the strip.
__device__ inline int window_position(const DirectConvParams& n, int position) {
  int column;
  const int row = n.by_positions.split(min(position, n.strip * n.positions[1] - 1), column);
  return row * n.step[0] * n.image_tile.row + column * n.step[1] * n.image_tile.pixel;
}

// Loops over the units of this block, double-buffered: load(unit, stage's address), then
// compute(unit, stage's address) when this block's copies have arrived. The next unit loads during
// compute.
template <typename Load, typename Mask, typename Compute>
__device__ void for_units(const DirectConvParams& n, uint32_t memory, const Load& load,
                          const Mask& mask, const Compute& compute) {
  const uint32_t stages = memory + n.stages_at;
  const int hop = static_cast<int>(gridDim.x);
  int unit = static_cast<int>(blockIdx.x);
  if (unit < n.units) load(unit, stages);
  end_copies();
  for (int turn = 0; unit < n.units; unit += hop, turn ^= 1) {
    if (unit + hop < n.units) load(unit + hop, stages + (turn ^ 1) * n.stage);
    end_copies();
    wait_for_copies<1>();
    mask(stages + turn * n.stage);
    __syncthreads();
    compute(unit, stages + turn * n.stage);
    __syncthreads();
  }
}

#endif

}  // namespace crema

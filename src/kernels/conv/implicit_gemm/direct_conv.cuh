// What the kernels of direct_conv_gpu.cu and direct_conv_wgrad_gpu.cu know and how they load
// images into shared memory.
#pragma once

#include "kernels/conv/implicit_gemm/direct_conv.h"
#include "kernels/core/mma.cuh"

namespace crema {

// Where a tensor lies in shared memory: bytes from one row, and one pixel, to the next. Pixels are
// an odd number of 16 bytes apart, so that matrix loads meet no bank twice.
struct WindowTile {
  int at;  // from the start of a stage, or of all shared memory
  int rows, columns;
  int chunks;  // of 8 channels that a pixel has
  int row, pixel;
  FastDivide by_chunks;
};

struct WindowImage {
  const void* data;
  int height, width, channels;
  int vector;  // channels that are copied at once
  int step;    // elements from one image to the next
};

// Of a case with pooling (direct_conv_pool.cuh): forward's result, and dy's, are cells of 2 x 2
// places.
struct WindowPool {
  uint8_t* kept;
  int cells[2];  // rows and columns of them
  FastDivide by_row;
  int places[2];  // of the convolution, which the last cells may reach over
  // Cells of a row of the tile that holds dy, each with its chunks.
  int slots;
  FastDivide by_slots;
  // Bits of the dropout for a strip's cells, four of one draw in a byte.
  DropoutMask dropout;
  int draws_at;      // in a stage
  int quads, whole;  // and how many of them have four channels
  FastDivide by_quads, by_whole;
};

// What is behind the convolution: nothing whose gradient a kernel takes, a ReLU whose sign it
// reads, or a pooling, which has the ReLU in its places.
enum class Behind { nothing, relu, pool };

// All coordinates are pairs of row and column.
struct WindowNumbers {
  WindowImage image;  // that the windows lie in: x, or dy for the gradient of the data
  WindowImage other;  // w as an image of outputs x taps, or dy for the gradient of the weights
  const void* sign;   // y beside dy
  const void* bias;
  void* out;
  float* db;
  bool accumulate_w, accumulate_b, relu;
  int places[2];  // of the windows
  int origin[2];  // a place's window begins there, plus place * step
  int step[2];
  int tap[2], first_tap[2];  // tap t lies at first_tap + t * tap in the window
  int taps, kernel_width;
  int columns;                      // of the result
  int columns_each;                 // of a block's part of them, for forward
  int strip, strips, units;         // rows of places a block takes at once; in an image; in all
  FastDivide by_strips, by_places;  // by_places: in a row
  WindowTile image_tile, other_tile;
  int sign_at;  // of y in a stage
  int tables;   // where the tables of offsets lie
  int stage, stages, stages_at;
  int entries;  // chunks of 8 that are summed over, or that the result's columns are
  int warps_m, warps_n, slices;
  int slices_at;        // where slices behind the first leave their sums, after the stages
  int tile_pitch;       // floats from row to row where blocks leave their sums
  int blocks, cluster;  // blocks, and how many of them share their memory
  bool adds;            // blocks add their sums to dw and db, in any order
  float* parts;
  unsigned* counters;
  int shared_bytes;
  float factor;  // of the gradients
  WindowPool pool;
};

#ifdef __CUDACC__

__device__ inline void store_zeros(uint32_t to) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(to), "r"(0));
}

// Calls start(column, chunk) and then body(row, slot's offset) for each row, for all 16 bytes of
// the tile that this thread loads. A thread keeps its column as long as it can.
template <typename Start, typename Body>
__device__ void for_slots(const WindowTile& tile, const Start& start, const Body& body) {
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

// Pixels from (first_row, first_column) on; zeros outside of the image and behind its channels.
template <typename T>
__device__ void load_tile(const WindowImage& image, const void* data, int number, int first_row,
                          int first_column, const WindowTile& tile, uint32_t to) {
  const T* const from = static_cast<const T*>(data) + static_cast<int64_t>(number) * image.step;
  with_vector(image.vector, [&]<int kVector>() {
    const T* column_from = from;
    int pieces = 0;  // that lie in the image where the row does
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

// Takes dy through the ReLU of y: this thread's own slots, both loaded.
__device__ inline void mask_tile(const WindowTile& tile, uint32_t dy, uint32_t y) {
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

// Where entry e, chunk e % chunks of tap e / chunks, lies behind a window's begin.
__device__ inline int window_entry(const WindowNumbers& n, int entry) {
  int chunk;
  const int tap = n.image_tile.by_chunks.split(entry, chunk);
  const int row = tap / n.kernel_width, column = tap % n.kernel_width;
  return (n.first_tap[0] + row * n.tap[0]) * n.image_tile.row +
         (n.first_tap[1] + column * n.tap[1]) * n.image_tile.pixel + chunk * 16;
}

// Where the window of a place of the strip begins.
__device__ inline int window_place(const WindowNumbers& n, int place) {
  int column;
  const int row = n.by_places.split(min(place, n.strip * n.places[1] - 1), column);
  return row * n.step[0] * n.image_tile.row + column * n.step[1] * n.image_tile.pixel;
}

// Goes through the units of this block: load(unit, stage's address), then compute(unit, stage's
// address) when its own copies have arrived. While one is computed the next one is on its way.
template <typename Load, typename Mask, typename Compute>
__device__ void for_units(const WindowNumbers& n, uint32_t memory, const Load& load,
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

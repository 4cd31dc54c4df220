// A 2 x 2 max pooling, and a dropout after it, fused into the kernels of direct_conv_gpu.cu and
// direct_conv_wgrad_gpu.cu: forward keeps the maximum of four positions that one thread already
// holds, and gradients unpool dy from its cells as they load it.
#pragma once

#include "kernels/conv/implicit_gemm/direct_conv.cuh"

#ifdef __CUDACC__

namespace crema {

constexpr uint8_t kNoPosition = 255;  // kept: no position gets the gradient

// The offset of the window of one position of a cell of the strip.
__device__ inline int offset_in_cell(const DirectConvParams& n, int cell, int down, int right) {
  int column;
  const int row = n.pool.by_row.split(min(cell, n.strip / 2 * n.pool.cells[1] - 1), column);
  return (row * 2 + down) * n.step[0] * n.image_tile.row +
         (column * 2 + right) * n.step[1] * n.image_tile.pixel;
}

// The dropout bits of a strip's cells, by all threads: of quad q of its cell c in byte c * quads +
// q.
__device__ inline void draw_cells(const DirectConvPool& p, const Random& random, int number,
                                  int first_cell, int count, unsigned char* bits) {
  const int64_t cells = p.cells[0] * p.cells[1];
  for (int at = static_cast<int>(threadIdx.x); at < count * p.quads;
       at += static_cast<int>(blockDim.x)) {
    int quad;
    const int cell = first_cell + p.by_quads.split(at, quad);
    const Random::Four four =
        random.four((static_cast<int64_t>(number) * p.quads + quad) * cells + cell);
    int kept = 0;
#pragma unroll
    for (int word = 0; word < 4; ++word) kept |= (four.v[word] >= p.dropout.threshold) << word;
    bits[at] = static_cast<unsigned char>(kept);
  }
}

// Pools the results of a pair of tiles. The first has the upper, the second the lower positions of
// eight cells, left ones before right ones. Stores each cell's maximum, the first of equal ones,
// and its position. first_cell: index of the first cell in the image; count: cells from there on;
// bits: theirs, from draw_cells().
template <typename T, int kN>
__device__ void store_cells(const DirectConvParams& n, const float (&sums)[2][kN][4], int number,
                            int first_cell, int count, int first_column,
                            const unsigned char* bits) {
  const DirectConvPool& p = n.pool;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool drops = p.dropout.threshold > 0;
  if (lane / 4 >= count) return;
  const int cell = first_cell + lane / 4;
  int cell_column;
  const int cell_row = p.by_row.split(cell, cell_column);
  const bool down = cell_row * 2 + 1 < p.positions[0], right = cell_column * 2 + 1 < p.positions[1];
  const bool there[4] = {true, right, down, right && down};
  const int64_t out =
      (static_cast<int64_t>(number) * p.cells[0] * p.cells[1] + cell) * n.columns + first_column;
  const T* const bias = static_cast<const T*>(n.bias);
#pragma unroll
  for (int j = 0; j < kN; ++j) {
    const int ahead = j * 8 + lane % 4 * 2;
    if (first_column + ahead >= n.columns) continue;
    T values[2];
    uint8_t kept[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int column = first_column + ahead + k;
      const float offset = bias ? static_cast<float>(bias[column]) : 0.f;
      // Rounded to 16 bits, as a separate pooling would read them.
      float best = 0;
      int position = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float value = static_cast<float>(T(sums[i / 2][j][i % 2 * 2 + k] + offset));
        const bool better = i == 0 || (there[i] && value > best);
        best = better ? value : best;
        position = better ? i : position;
      }
      bool gives = true;
      if (n.relu) {
        gives = best > 0;
        best = gives ? best : 0;
      }
      if (drops) {
        // DropoutLayout::quad() and word() without division.
        int quad = p.whole, word = column - 4 * p.whole;
        if (word < 0) word = p.by_whole.split(column, quad);
        const bool stays = bits[lane / 4 * p.quads + quad] >> word & 1;
        best = stays ? best : 0;
        gives = gives && stays;
      }
      values[k] = T(best * p.dropout.factor);
      kept[k] = gives ? static_cast<uint8_t>(position) : kNoPosition;
    }
    *reinterpret_cast<uint32_t*>(static_cast<T*>(n.out) + out + ahead) =
        values[0].bits | static_cast<uint32_t>(values[1].bits) << 16;
    if (p.kept)
      *reinterpret_cast<uint16_t*>(p.kept + out + ahead) =
          static_cast<uint16_t>(kept[0] | kept[1] << 8);
  }
}

// Loads kCount 16-bit values and as many bytes.
template <int kCount>
__device__ void load_cells(const void* values, const uint8_t* kept, uint32_t* to,
                           uint8_t* kept_to) {
  using Values =
      std::conditional_t<kCount == 8, uint4, std::conditional_t<kCount == 4, uint2, uint32_t>>;
  using Kept =
      std::conditional_t<kCount == 8, uint2, std::conditional_t<kCount == 4, uint32_t, uint16_t>>;
  *reinterpret_cast<Values*>(to) = *static_cast<const Values*>(values);
  *reinterpret_cast<Kept*>(kept_to) = *reinterpret_cast<const Kept*>(kept);
}

// Like load_tile(), of dy before the pooling: zero except at the position that a cell kept.
template <typename T>
__device__ void load_pooled(const DirectConvParams& n, const DirectConvImage& image, int number,
                            int first_row, int first_column, const DirectConvTile& tile,
                            uint32_t to) {
  const DirectConvPool& p = n.pool;
  const int top = first_row >> 1, left = first_column >> 1;
  const int rows = ((first_row + tile.rows - 1) >> 1) - top + 1;
  const int64_t from = static_cast<int64_t>(number) * p.cells[0] * p.cells[1] * image.channels;
  with_vector(image.vector, [&]<int kVector>() {
#pragma unroll 2
    for (int slot = static_cast<int>(threadIdx.x); slot < rows * p.slots;
         slot += static_cast<int>(blockDim.x)) {
      int in_row, chunk;
      const int y = top + p.by_slots.split(slot, in_row);
      const int x = left + tile.by_chunks.split(in_row, chunk);
      const bool inside = static_cast<unsigned>(y) < static_cast<unsigned>(p.cells[0]) &&
                          static_cast<unsigned>(x) < static_cast<unsigned>(p.cells[1]);
      const int64_t at = from + (y * p.cells[1] + x) * image.channels + chunk * 8;
      alignas(16) uint32_t dy[4] = {};
      alignas(8) uint32_t kept[2] = {0xffffffffu, 0xffffffffu};
#pragma unroll
      for (int piece = 0; piece < 8; piece += kVector) {
        if (inside && chunk * 8 + piece < image.channels)
          load_cells<kVector>(static_cast<const T*>(image.data) + at + piece, p.kept + at + piece,
                              dy + piece / 2, reinterpret_cast<uint8_t*>(kept) + piece);
      }
#pragma unroll
      for (int position = 0; position < 4; ++position) {
        const int row = 2 * y + position / 2 - first_row,
                  column = 2 * x + position % 2 - first_column;
        if (static_cast<unsigned>(row) >= static_cast<unsigned>(tile.rows) ||
            static_cast<unsigned>(column) >= static_cast<unsigned>(tile.columns))
          continue;
        uint32_t chosen[4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          // A byte of ones for each element that kept this position; doubled to mask 16 bits.
          const uint32_t equal = __vcmpeq4(kept[half], 0x01010101u * position);
          chosen[2 * half] = dy[2 * half] & __byte_perm(equal, 0, 0x1100);
          chosen[2 * half + 1] = dy[2 * half + 1] & __byte_perm(equal, 0, 0x3322);
        }
        asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(
                         to + row * tile.row + column * tile.pixel + chunk * 16),
                     "r"(chosen[0]), "r"(chosen[1]), "r"(chosen[2]), "r"(chosen[3]));
      }
    }
  });
}

}  // namespace crema

#endif

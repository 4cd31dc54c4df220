// A 2 x 2 max pooling, and a dropout after it, fused into the kernels of direct_conv_gpu.cu and
// direct_conv_wgrad_gpu.cu: forward keeps the maximum of four positions that one thread already
// holds, and gradients unpool dy as they load it.
#pragma once

#include "kernels/conv/implicit_gemm/direct_conv.cuh"

#ifdef __CUDACC__

namespace crema {

constexpr uint8_t kNoPosition = 255;  // argmax where no position gets the gradient

// The byte offset of the window of one of the four positions of a pool window of the strip.
__device__ inline int pooled_byte_offset(const DirectConvParams& n, int pool_window, int down,
                                         int right) {
  const int count = n.windows.strip_rows / 2 * n.pool.extent[1];
  int column;
  const int row = n.pool.by_columns.split(min(pool_window, count - 1), column);
  return window_byte_offset(n, row * 2 + down, column * 2 + right);
}

// The dropout bits of a strip's pool windows, by all threads: those of quad q of its pool window i
// go to byte i * quads + q. first: index of its first pool window in the image.
__device__ inline void draw_dropout(const DirectConvParams& n, const Random& random,
                                    int image_index, int first, int count, unsigned char* bits) {
  const DirectConvPool& p = n.pool;
  const int64_t pool_windows = p.extent[0] * p.extent[1];
  for (int at = static_cast<int>(threadIdx.x); at < count * p.quads;
       at += static_cast<int>(blockDim.x)) {
    int quad;
    const int pool_window = first + p.by_quads.split(at, quad);
    const Random::Four four = random.four(
        ((n.operands.dropout_first_image + image_index) * p.quads + quad) * pool_windows +
        pool_window);
    int stay = 0;
#pragma unroll
    for (int word = 0; word < 4; ++word)
      stay |= (four.v[word] >= n.operands.dropout.threshold) << word;
    bits[at] = static_cast<unsigned char>(stay);
  }
}

// Pools the results of a pair of tiles. The first has the upper, the second the lower positions of
// eight pool windows, left ones before right ones. Stores each pool window's maximum, the first of
// equal ones, and its position. first: index of the first pool window in the image; count: pool
// windows from there on; bits: theirs, from draw_dropout().
template <typename T, int kN>
__device__ void store_pooled(const DirectConvParams& n, const float (&sums)[2][kN][4],
                             int image_index, int first, int count, int first_column,
                             const unsigned char* bits) {
  const DirectConvPool& p = n.pool;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool drops = n.operands.dropout.threshold > 0;
  if (lane / 4 >= count) return;
  const int pool_window = first + lane / 4;
  int pool_column;
  const int pool_row = p.by_columns.split(pool_window, pool_column);
  const bool down = pool_row * 2 + 1 < p.positions[0], right = pool_column * 2 + 1 < p.positions[1];
  const bool there[4] = {true, right, down, right && down};
  const int64_t out =
      (static_cast<int64_t>(image_index) * p.extent[0] * p.extent[1] + pool_window) *
          n.tiling.columns +
      first_column;
  const T* const bias = static_cast<const T*>(n.operands.bias);
#pragma unroll
  for (int j = 0; j < kN; ++j) {
    const int ahead = j * 8 + lane % 4 * 2;
    if (first_column + ahead >= n.tiling.columns) continue;
    T values[2];
    uint8_t argmax[2];
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
      if (n.operands.relu) {
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
      values[k] = T(best * n.operands.dropout.factor);
      argmax[k] = gives ? static_cast<uint8_t>(position) : kNoPosition;
    }
    *reinterpret_cast<uint32_t*>(static_cast<T*>(n.operands.out) + out + ahead) =
        values[0].bits | static_cast<uint32_t>(values[1].bits) << 16;
    if (n.operands.argmax)
      *reinterpret_cast<uint16_t*>(n.operands.argmax + out + ahead) =
          static_cast<uint16_t>(argmax[0] | argmax[1] << 8);
  }
}

// Loads kCount 16-bit values and as many bytes.
template <int kCount>
__device__ void load_with_argmax(const void* values, const uint8_t* argmax, uint32_t* to,
                                 uint8_t* argmax_to) {
  using Values =
      std::conditional_t<kCount == 8, uint4, std::conditional_t<kCount == 4, uint2, uint32_t>>;
  using Argmax =
      std::conditional_t<kCount == 8, uint2, std::conditional_t<kCount == 4, uint32_t, uint16_t>>;
  *reinterpret_cast<Values*>(to) = *static_cast<const Values*>(values);
  *reinterpret_cast<Argmax*>(argmax_to) = *reinterpret_cast<const Argmax*>(argmax);
}

// Like load_tile(), of dy before the pooling: zero except at the argmax of each pool window.
template <typename T>
__device__ void load_pooled(const DirectConvParams& n, const DirectConvImage& image,
                            const void* data, int image_index, int first_row, int first_column,
                            const DirectConvTile& tile, uint32_t to) {
  const DirectConvPool& p = n.pool;
  const int top = first_row >> 1, left = first_column >> 1;
  const int rows = ((first_row + tile.rows - 1) >> 1) - top + 1;
  const int64_t from =
      static_cast<int64_t>(image_index) * p.extent[0] * p.extent[1] * image.channels;
  with_vector(image.vector, [&]<int kVector>() {
#pragma unroll 2
    for (int slot = static_cast<int>(threadIdx.x); slot < rows * p.slots;
         slot += static_cast<int>(blockDim.x)) {
      int in_row, chunk;
      const int y = top + p.by_slots.split(slot, in_row);
      const int x = left + tile.by_chunks.split(in_row, chunk);
      const bool inside = static_cast<unsigned>(y) < static_cast<unsigned>(p.extent[0]) &&
                          static_cast<unsigned>(x) < static_cast<unsigned>(p.extent[1]);
      const int64_t at = from + (y * p.extent[1] + x) * image.channels + chunk * 8;
      alignas(16) uint32_t dy[4] = {};
      alignas(8) uint32_t argmax[2] = {0xffffffffu, 0xffffffffu};
#pragma unroll
      for (int piece = 0; piece < 8; piece += kVector) {
        if (inside && chunk * 8 + piece < image.channels)
          load_with_argmax<kVector>(static_cast<const T*>(data) + at + piece,
                                    n.operands.argmax + at + piece, dy + piece / 2,
                                    reinterpret_cast<uint8_t*>(argmax) + piece);
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
          // A byte of ones for each element whose argmax is this position; doubled to mask 16 bits.
          const uint32_t equal = __vcmpeq4(argmax[half], 0x01010101u * position);
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

// Max pooling with the common square windows, whose size is at least the stride, so that none is
// empty (3 stride 2, 3 stride 1, 2 stride 2). A thread has 16 bytes of channels of one column and
// walks down the rows, so that rows shared by several windows are loaded and compared once. Only
// for .cu files of a CUDA build.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "device/programmatic_launch.h"
#include "kernels/core/pack.h"
#include "kernels/pool/pool_box.cuh"
#include "kernels/pool/pool_kernels.h"

namespace crema::pooling {

// Rows of the result per thread (of walk_gradients(): rows of tiles).
constexpr int kWalkRows = 4;

struct alignas(16) Words {
  uint32_t v[4];
};
// The selected cells of a pack of windows, one byte each.
template <typename T>
struct alignas(kPackCount<T>) Cells {
  uint32_t v[kPackCount<T> / 4];
};

// 4 bytes as one or two lanes of T. Cells and masks have the same lanes; a mask lane is all ones or
// zero.
template <typename T>
struct Lanes {
  using Two = std::conditional_t<std::is_same_v<T, Half>, __half2, __nv_bfloat162>;
  static constexpr uint32_t kOnes = 0x00010001;
  static constexpr uint32_t kLowest = std::is_same_v<T, Half> ? 0xfc00fc00 : 0xff80ff80;
  static __device__ Two two(uint32_t bits) { return *reinterpret_cast<const Two*>(&bits); }
  static __device__ uint32_t larger(uint32_t a, uint32_t b) {
    const Two maximum = __hmax2(two(a), two(b));
    return *reinterpret_cast<const uint32_t*>(&maximum);
  }
  static __device__ uint32_t equal(uint32_t a, uint32_t b) { return __heq2_mask(two(a), two(b)); }
  static __device__ uint32_t above(uint32_t a, uint32_t b) { return __hgt2_mask(two(a), two(b)); }
  // The low bytes of the lanes of four words.
  static __device__ Cells<T> bytes(const uint32_t (&words)[4]) {
    return {{__byte_perm(words[0], words[1], 0x6420), __byte_perm(words[2], words[3], 0x6420)}};
  }
};
template <>
struct Lanes<float> {
  static constexpr uint32_t kOnes = 1;
  static constexpr uint32_t kLowest = 0xff7fffff;  // -FLT_MAX
  static __device__ uint32_t larger(uint32_t a, uint32_t b) {
    return __float_as_uint(fmaxf(__uint_as_float(a), __uint_as_float(b)));
  }
  static __device__ uint32_t equal(uint32_t a, uint32_t b) {
    return __uint_as_float(a) == __uint_as_float(b) ? ~0u : 0u;
  }
  static __device__ uint32_t above(uint32_t a, uint32_t b) {
    return __uint_as_float(a) > __uint_as_float(b) ? ~0u : 0u;
  }
  static __device__ Cells<float> bytes(const uint32_t (&words)[4]) {
    return {{__byte_perm(__byte_perm(words[0], words[1], 0x0040),
                         __byte_perm(words[2], words[3], 0x0040), 0x5410)}};
  }
};

__device__ inline uint32_t select(uint32_t mask, uint32_t yes, uint32_t no) {
  return (mask & yes) | (~mask & no);
}
__device__ inline int clamp_to(int at, int extent) { return min(max(at, 0), extent - 1); }

// Calls write(offset, largest, cells) for the windows of this thread: the maxima of what
// load(offset) returns, and the cells that hold them, one per lane. A position outside the image is
// clamped to the nearest one inside, which is in the same window, and its cell is clamped too.
template <typename T, int kWindow, int kStep, typename Load, typename Write>
__device__ void walk_windows(const Geometry32& g, const Position& o, const Load& load,
                             const Write& write) {
  using L = Lanes<T>;
  const int left = o.at[2] * kStep - g.pad[2], top = o.at[1] * kStep - g.pad[1];
  int at[kWindow];
  uint32_t cells[kWindow];
#pragma unroll
  for (int w = 0; w < kWindow; ++w) {
    const int column = clamp_to(left + w, g.in[2]);
    at[w] = o.offset(g.in, o.at[0], 0, column);
    cells[w] = static_cast<uint32_t>(column - left) * L::kOnes;
  }
  const int row_packs = g.in[2] * g.packs;
  uint32_t maximum[kWindow][4], from[kWindow][4];  // per input row; only the last kWindow rows
#pragma unroll
  for (int r = 0; r < kStep * (kWalkRows - 1) + kWindow; ++r) {
    const int row = clamp_to(top + r, g.in[1]) * row_packs;
    Words loaded[kWindow];
#pragma unroll
    for (int w = 0; w < kWindow; ++w) loaded[w] = load(at[w] + row);
    constexpr int kLast = kWindow - 1;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t largest = loaded[kLast].v[i], cell = cells[kLast];
#pragma unroll
      for (int w = kLast - 1; w >= 0; --w) largest = L::larger(largest, loaded[w].v[i]);
#pragma unroll
      for (int w = kLast - 1; w >= 0; --w)
        cell = select(L::equal(loaded[w].v[i], largest), cells[w], cell);
      maximum[r % kWindow][i] = largest;
      from[r % kWindow][i] = cell;
    }
    // Completes the window that ends in this row.
    if (r < kLast || (r - kLast) % kStep != 0) continue;
    const int down = (r - kLast) / kStep, first = top + down * kStep;
    uint32_t in_rows[kWindow];
#pragma unroll
    for (int h = 0; h < kWindow; ++h)
      in_rows[h] =
          static_cast<uint32_t>((clamp_to(first + h, g.in[1]) - first) * kWindow) * L::kOnes;
    Words out;
    uint32_t argmax[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t largest = maximum[r % kWindow][i], cell = from[r % kWindow][i] + in_rows[kLast];
#pragma unroll
      for (int h = kLast - 1; h >= 0; --h)
        largest = L::larger(largest, maximum[(r - kLast + h) % kWindow][i]);
#pragma unroll
      for (int h = kLast - 1; h >= 0; --h) {
        const int slot = (r - kLast + h) % kWindow;
        cell = select(L::equal(maximum[slot][i], largest), from[slot][i] + in_rows[h], cell);
      }
      out.v[i] = largest;
      argmax[i] = cell;
    }
    if (o.at[1] + down < g.out[1])
      write(o.offset(g.out, o.at[0], o.at[1] + down, o.at[2]), out, argmax);
  }
}

// only_positive: only outputs above 0 record a cell. relu_after: outputs below 0 become 0.
template <typename T, int kWindow, int kStep>
__global__ void walk_forward(Geometry32 g, Tiles tiles, bool only_positive, bool relu_after,
                             const Words* x, Words* y, Cells<T>* index) {
  using L = Lanes<T>;
  const Position o(g, tiles, kWalkRows);
  if (!o.inside) return;
  wait_for_earlier_kernels();
  const uint32_t minimum = only_positive ? 0u : L::kLowest;
  walk_windows<T, kWindow, kStep>(
      g, o, [&](int at) { return x[at]; },
      [&](int to, const Words& largest, uint32_t(&cells)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) cells[i] |= ~L::above(largest.v[i], minimum);
        Words out = largest;
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (relu_after) out.v[i] &= ~L::above(0, largest.v[i]);
        y[to] = out;
        if (index) index[to] = L::bytes(cells);
      });
  let_next_kernel_start();
}

// For both lanes: sum += gradient where the lanes of a and b are equal, with one comparison of half
// pairs: the lanes are integers below 1024, which compare as (subnormal) halves.
__device__ inline void add_where_equal(uint32_t a, uint32_t b, const float* gradient, float* sum) {
  asm("{ .reg .pred p, q; setp.eq.f16x2 p|q, %2, %3; @p add.f32 %0, %0, %4; @q add.f32 %1, %1, %5; "
      "}"
      : "+f"(sum[0]), "+f"(sum[1])
      : "r"(a), "r"(b), "f"(gradient[0]), "f"(gradient[1]));
}

// A tile is kStep x kStep pixels of dx, aligned so that a window starts at each tile. Calls
// write(offset, load(offset), sums) for the pixels of this thread's tiles, with the sums of their
// gradients; the loads are in flight while the sums are computed.
template <typename T, int kWindow, int kStep, typename Load, typename Write>
__device__ void walk_gradients(const Geometry32& g, const Position& tile, const Cells<T>* index,
                               const WidePack<T>* dy, const Load& load, const Write& write) {
  constexpr int kPack = kPackCount<T>;
  constexpr int kBefore = (kWindow - 1) / kStep;  // earlier windows that reach into a tile
  const int left = tile.at[2] * kStep - g.pad[2], top = tile.at[1] * kStep - g.pad[1];
  float sums[kWindow][kStep][kPack] = {};  // for the rows of the window at this step
#pragma unroll
  for (int step = -kBefore; step < kWalkRows; ++step) {
    const int o = tile.at[1] + step;
    decltype(load(0)) loaded[kStep][kStep];
#pragma unroll
    for (int r = 0; r < kStep && step >= 0; ++r) {
#pragma unroll
      for (int s = 0; s < kStep; ++s) {
        loaded[r][s] = load(tile.offset(g.in, tile.at[0], clamp_to(top + step * kStep + r, g.in[1]),
                                        clamp_to(left + s, g.in[2])));
      }
    }
    float gradients[kBefore + 1][kPack];
    uint32_t cells[kBefore + 1][kPack / 2];  // that the windows selected, two per word
#pragma unroll
    for (int c = 0; c <= kBefore; ++c) {
      const int column = tile.at[2] - c;
      const int at =
          tile.offset(g.out, tile.at[0], clamp_to(o, g.out[1]), clamp_to(column, g.out[2]));
      const bool exists = o >= 0 && o < g.out[1] && column >= 0 && column < g.out[2];
      const WidePack<T> given = dy[at];
      const Cells<T> words = index[at];
#pragma unroll
      for (int k = 0; k < kPack; ++k) gradients[c][k] = given.v[k];
#pragma unroll
      for (int k = 0; k < kPack / 2; ++k) {
        const uint32_t word = exists ? words.v[k / 2] : ~0u;
        cells[c][k] = __byte_perm(word, 0, k % 2 == 0 ? 0x4140 : 0x4342);
      }
    }
#pragma unroll
    for (int r = 0; r < kWindow; ++r) {
      if (step * kStep + r < 0 || step * kStep + r >= kWalkRows * kStep) continue;
#pragma unroll
      for (int w = 0; w < kWindow; ++w) {
#pragma unroll
        for (int k = 0; k < kPack; k += 2) {
          float* const sum = &sums[r][w % kStep][k];
          add_where_equal(cells[w / kStep][k / 2], 0x10001u * (r * kWindow + w),
                          &gradients[w / kStep][k], sum);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kStep && step >= 0; ++r) {
      const int row = top + step * kStep + r;
#pragma unroll
      for (int s = 0; s < kStep; ++s) {
        const int column = left + s;
        if (row >= 0 && row < g.in[1] && column >= 0 && column < g.in[2])
          write(tile.offset(g.in, tile.at[0], row, column), loaded[r][s], sums[r][s]);
      }
    }
#pragma unroll
    for (int r = 0; r < kWindow; ++r) {
#pragma unroll
      for (int s = 0; s < kStep; ++s) {
#pragma unroll
        for (int k = 0; k < kPack; ++k)
          sums[r][s][k] = r + kStep < kWindow ? sums[(r + kStep) % kWindow][s][k] : 0;
      }
    }
  }
}

// The launch for the tiles of walk_gradients().
inline Launch launch_of_gradients(const Geometry32& g) {
  int tiles[3] = {g.in[0]};
  for (int a = 1; a < 3; ++a) tiles[a] = (g.in[a] + g.pad[a] + g.stride[a] - 1) / g.stride[a];
  return {g, tiles, kWalkRows};
}

template <typename T, int kWindow, int kStep>
__global__ void walk_backward(Geometry32 g, Tiles tiles, const Cells<T>* index,
                              const WidePack<T>* dy, WidePack<T>* dx) {
  struct Nothing {};
  const Position tile(g, tiles, kWalkRows);
  if (!tile.inside) return;
  wait_for_earlier_kernels();
  walk_gradients<T, kWindow, kStep>(
      g, tile, index, dy, [](int) { return Nothing(); },
      [&](int at, Nothing, const float(&sums)[kPackCount<T>]) {
        WidePack<T> out;
#pragma unroll
        for (int k = 0; k < kPackCount<T>; ++k) out.v[k] = sums[k];
        dx[at] = out;
      });
  let_next_kernel_start();
}

}  // namespace crema::pooling

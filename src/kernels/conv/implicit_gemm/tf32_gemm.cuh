// The tiles of the kernels of tf32_gemm.h: their loads into shared memory, and their sums in
// registers. Only for .cu files of a CUDA build.
#pragma once

#include "kernels/conv/implicit_gemm/implicit_gemm.cuh"

namespace crema {

#ifdef __CUDACC__

constexpr int kTf32Depth = 32, kTf32Stages = 3;

template <int kM, int kN, int kWarpsM, int kWarpsN>
struct Tf32Tile {
  static constexpr int m = kM, n = kN, warps_m = kWarpsM, warps_n = kWarpsN;
  static constexpr int threads = kWarpsM * kWarpsN * 32;
};

// An operand's tile in shared memory: kWide elements along M or N, kTf32Depth along K, contiguous
// along K or (kAcross) across it. Rows are padded so that a warp's reads have no bank conflicts.
template <int kWide, bool kAcross>
struct Tf32Operand {
  static constexpr int pitch = kAcross ? kWide + 8 : kTf32Depth + 4;
  static constexpr int rows = kAcross ? kTf32Depth : kWide;
  static constexpr int floats = rows * pitch;
  static constexpr int chunks = (kAcross ? kWide : kTf32Depth) / 4;  // of 4 floats per row

  __device__ static float at(const float* tile, int wide, int k) {
    return tile[kAcross ? k * pitch + wide : wide * pitch + k];
  }
};

template <typename Tile, ConvCall kCall>
struct Tf32Layout {
  using A = Tf32Operand<Tile::m, kCall == ConvCall::wgrad>;
  using B = Tf32Operand<Tile::n, kCall != ConvCall::fprop>;
  static constexpr int stage = A::floats + B::floats;
  static constexpr int bytes = stage * kTf32Stages * 4;
};

// Calls body<vector>(); vector: 1, 2 or 4.
template <typename Body>
__device__ void with_vector_of_floats(int vector, const Body& body) {
  if (vector == 4) {
    body.template operator()<4>();
  } else if (vector == 2) {
    body.template operator()<2>();
  } else {
    body.template operator()<1>();
  }
}

// Loads the tiles of both operands for a step that starts at `depth` along the reduction.
template <typename Tile, ConvCall kCall>
class Tf32Loads {
  using A = typename Tf32Layout<Tile, kCall>::A;
  using B = typename Tf32Layout<Tile, kCall>::B;
  static constexpr int kThreads = Tile::threads, kRows = A::rows * A::chunks / kThreads;
  static_assert(kThreads % A::chunks == 0 && kThreads % B::chunks == 0, "a thread keeps its chunk");

 public:
  __device__ Tf32Loads(const ImplicitGemmParams& n, int group, int first_row, int first_column)
      : g_(n.geometry),
        taps_(n.operands.taps),
        a_(static_cast<const float*>(n.operands.a) + group * n.geometry.a_group),
        b_(static_cast<const float*>(n.operands.b) + group * n.geometry.b_group),
        first_row_(first_row),
        first_column_(first_column) {
    if constexpr (kCall != ConvCall::wgrad) {
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        positions_[i] = window_position(g_, first_row + row_of<A>(i), g_.rows);
    }
  }

  __device__ void operator()(int depth, uint32_t a_to, uint32_t b_to) const {
    if constexpr (kCall == ConvCall::wgrad) {
      load_rows<A>(g_.a_vector, a_, depth, g_.depth, first_row_, g_.rows, g_.a_pixel, a_to);
      gather_columns(depth, b_to);
    } else {
      gather_rows(depth, a_to);
      if constexpr (kCall == ConvCall::fprop) {
        load_rows<B>(g_.b_vector, b_, first_column_, g_.columns, depth, g_.depth, g_.w_output,
                     b_to);
      } else {
        load_weights(depth, b_to);
      }
    }
  }

 private:
  template <typename Operand>
  __device__ static int row_of(int i) {
    return static_cast<int>(threadIdx.x) / Operand::chunks + i * (kThreads / Operand::chunks);
  }
  template <typename Operand>
  __device__ static int column_of() {
    return static_cast<int>(threadIdx.x) % Operand::chunks * 4;
  }
  template <int kVector>
  __device__ static void copy(uint32_t to, int row, int pitch, int column, const float* from,
                              int at, bool inside) {
    copy_async<kVector * 4>(to + (row * pitch + column) * 4, from + (inside ? at : 0), inside);
  }

  // Rows are positions of the other image, columns k = (tap, channel) of the gathered one.
  __device__ void gather_rows(int depth, uint32_t to) const {
    with_vector_of_floats(g_.a_vector, [&]<int kVector>() {
#pragma unroll
      for (int piece = 0; piece < 4; piece += kVector) {
        const int column = column_of<A>() + piece;
        const FilterTap tap = taps_[(depth + column) / kVector];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          int at;
          const bool inside = filter_tap(g_, positions_[i], tap, at);
          copy<kVector>(to, row_of<A>(i), A::pitch, column, a_, at, inside);
        }
      }
    });
  }

  // Operand x of wgrad: row k is a position of y, columns are (tap, channel).
  __device__ void gather_columns(int depth, uint32_t to) const {
    with_vector_of_floats(g_.b_vector, [&]<int kVector>() {
      FilterTap taps[4 / kVector];
#pragma unroll
      for (int piece = 0; piece < 4 / kVector; ++piece)
        taps[piece] = taps_[(first_column_ + column_of<B>()) / kVector + piece];
#pragma unroll
      for (int i = 0; i < B::rows * B::chunks / kThreads; ++i) {
        const WindowPosition position = window_position(g_, depth + row_of<B>(i), g_.depth);
#pragma unroll
        for (int piece = 0; piece < 4 / kVector; ++piece) {
          int at;
          const bool inside = filter_tap(g_, position, taps[piece], at);
          copy<kVector>(to, row_of<B>(i), B::pitch, column_of<B>() + piece * kVector, b_, at,
                        inside);
        }
      }
    });
  }

  // Rows of a matrix: element (row, column) is at row * pitch + column.
  template <typename Operand>
  __device__ static void load_rows(int vector, const float* from, int first_row, int rows,
                                   int first_column, int columns, int pitch, uint32_t to) {
    with_vector_of_floats(vector, [&]<int kVector>() {
#pragma unroll
      for (int i = 0; i < Operand::rows * Operand::chunks / kThreads; ++i) {
        const int row = row_of<Operand>(i);
#pragma unroll
        for (int piece = 0; piece < 4; piece += kVector) {
          const int column = column_of<Operand>() + piece;
          const bool inside = first_row + row < rows && first_column + column < columns;
          copy<kVector>(to, row, Operand::pitch, column, from,
                        (first_row + row) * pitch + first_column + column, inside);
        }
      }
    });
  }

  // w for dgrad: row k = (tap, output), column a channel of x.
  __device__ void load_weights(int depth, uint32_t to) const {
    with_vector_of_floats(g_.b_vector, [&]<int kVector>() {
#pragma unroll
      for (int i = 0; i < B::rows * B::chunks / kThreads; ++i) {
        const int row = row_of<B>(i), k = depth + row;
        int output;
        const int tap = g_.by_channels.split(k, output);
        const int start = output * g_.w_output + tap * g_.columns + first_column_;
#pragma unroll
        for (int piece = 0; piece < 4; piece += kVector) {
          const int column = column_of<B>() + piece;
          const bool inside = k < g_.depth && first_column_ + column < g_.columns;
          copy<kVector>(to, row, B::pitch, column, b_, start + column, inside);
        }
      }
    });
  }

  const ImplicitGemmGeometry& g_;
  const FilterTap* taps_;
  const float *a_, *b_;
  int first_row_, first_column_;
  WindowPosition positions_[kRows];  // one for each row of A that this thread loads
};

__device__ inline uint32_t rounded_to_tf32(float value) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

// A block's sums, in the registers of its threads (PTX ISA: mma.m16n8k8, .tf32).
template <typename Tile>
struct Tf32Sums {
  static constexpr int kM = Tile::m / Tile::warps_m / 16, kN = Tile::n / Tile::warps_n / 8;
  float sums[kM][kN][4] = {};

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int first_row() {
    return static_cast<int>(threadIdx.x) / 32 % Tile::warps_m * kM * 16 + lane() / 4;
  }
  __device__ static int first_column() {
    return static_cast<int>(threadIdx.x) / 32 / Tile::warps_m * kN * 8;
  }
  template <typename A, typename B>
  __device__ void add(const float* a, const float* b) {
    const int row = first_row(), column = first_column() + lane() / 4;
#pragma unroll
    for (int step = 0; step < kTf32Depth; step += 8) {
      const int k = step + lane() % 4;
      uint32_t left[kM][4], right[kN][2];
#pragma unroll
      for (int i = 0; i < kM; ++i) {
#pragma unroll
        for (int part = 0; part < 4; ++part)
          left[i][part] = rounded_to_tf32(A::at(a, row + i * 16 + part % 2 * 8, k + part / 2 * 4));
      }
#pragma unroll
      for (int j = 0; j < kN; ++j) {
#pragma unroll
        for (int part = 0; part < 2; ++part)
          right[j][part] = rounded_to_tf32(B::at(b, column + j * 8, k + part * 4));
      }
#pragma unroll
      for (int i = 0; i < kM; ++i) {
#pragma unroll
        for (int j = 0; j < kN; ++j) {
          float(&to)[4] = sums[i][j];
          asm volatile(
              "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
              "{%8,%9}, {%0,%1,%2,%3};"
              : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
              : "r"(left[i][0]), "r"(left[i][1]), "r"(left[i][2]), "r"(left[i][3]),
                "r"(right[j][0]), "r"(right[j][1]));
        }
      }
    }
  }
  // body(row, column, sum) for each.
  template <typename Body>
  __device__ void each(const Body& body) const {
    const int row = first_row(), column = first_column() + lane() % 4 * 2;
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int j = 0; j < kN; ++j) {
#pragma unroll
        for (int part = 0; part < 4; ++part)
          body(row + i * 16 + part / 2 * 8, column + j * 8 + part % 2, sums[i][j][part]);
      }
    }
  }
};

#endif

}  // namespace crema

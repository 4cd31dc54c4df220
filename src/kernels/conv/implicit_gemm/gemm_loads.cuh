// Tiles of the kernels of tf32_gemm.h and int8_gemm.h, and their loads into shared memory. Only for .cu
// files of a CUDA build.
#pragma once

#include "kernels/conv/implicit_gemm/implicit_gemm.cuh"

namespace crema {

#ifdef __CUDACC__

template <int kM, int kN, int kWarpsM, int kWarpsN>
struct GemmTile {
  static constexpr int m = kM, n = kN, warps_m = kWarpsM, warps_n = kWarpsN;
  static constexpr int threads = kWarpsM * kWarpsN * 32;
};

// An operand's tile in shared memory: kWide elements along M or N, kDepth along K, contiguous along K
// or (kAcross) across it. Rows are padded so that a warp's reads have no bank conflicts.
template <typename T, int kDepth, int kWide, bool kAcross>
struct GemmOperand {
  static constexpr int chunk = 16 / sizeof(T);  // elements of the largest copy
  static constexpr int pitch = kAcross ? kWide + 8 : kDepth + chunk;
  static constexpr int rows = kAcross ? kDepth : kWide;
  static constexpr int elements = rows * pitch;
  static constexpr int chunks = (kAcross ? kWide : kDepth) / chunk;  // in each row

  __device__ static T at(const T* tile, int wide, int k) {
    return tile[kAcross ? k * pitch + wide : wide * pitch + k];
  }
};

// The tiles that a block multiplies at a time.
template <typename T, int kDepth, typename Tile, ConvCall kCall>
struct GemmLayout {
  using Element = T;
  using A = GemmOperand<T, kDepth, Tile::m, kCall == ConvCall::wgrad>;
  using B = GemmOperand<T, kDepth, Tile::n, kCall != ConvCall::fprop>;
  static constexpr int stage = A::elements + B::elements;
};

// Calls body<vector>(); vector: elements of 4, 8 or 16 bytes.
template <typename T, typename Body>
__device__ void with_vector_of(int vector, const Body& body) {
  constexpr int kLeast = 4 / sizeof(T);
  if (vector == 4 * kLeast) {
    body.template operator()<4 * kLeast>();
  } else if (vector == 2 * kLeast) {
    body.template operator()<2 * kLeast>();
  } else {
    body.template operator()<kLeast>();
  }
}

// Loads the tiles of both operands for a step that starts at `depth` along the reduction.
template <typename Layout, typename Tile, ConvCall kCall>
class GemmLoads {
  using T = typename Layout::Element;
  using A = typename Layout::A;
  using B = typename Layout::B;
  static constexpr int kThreads = Tile::threads, kRows = A::rows * A::chunks / kThreads;
  static_assert(kThreads % A::chunks == 0 && kThreads % B::chunks == 0, "a thread keeps its chunk");

 public:
  __device__ GemmLoads(const ImplicitGemmParams& n, int group, int first_row, int first_column)
      : g_(n.geometry),
        taps_(n.operands.taps),
        a_(static_cast<const T*>(n.operands.a) + group * n.geometry.a_group),
        b_(static_cast<const T*>(n.operands.b) + group * n.geometry.b_group),
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
    return static_cast<int>(threadIdx.x) % Operand::chunks * Operand::chunk;
  }
  template <int kVector>
  __device__ static void copy(uint32_t to, int row, int pitch, int column, const T* from, int at,
                              bool inside) {
    constexpr int kBytes = sizeof(T);
    copy_async<kVector * kBytes>(to + (row * pitch + column) * kBytes, from + (inside ? at : 0),
                                 inside);
  }

  // Rows are positions of the other image, columns k = (tap, channel) of the gathered one.
  __device__ void gather_rows(int depth, uint32_t to) const {
    with_vector_of<T>(g_.a_vector, [&]<int kVector>() {
#pragma unroll
      for (int piece = 0; piece < A::chunk; piece += kVector) {
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
    with_vector_of<T>(g_.b_vector, [&]<int kVector>() {
      FilterTap taps[B::chunk / kVector];
#pragma unroll
      for (int piece = 0; piece < B::chunk / kVector; ++piece)
        taps[piece] = taps_[(first_column_ + column_of<B>()) / kVector + piece];
#pragma unroll
      for (int i = 0; i < B::rows * B::chunks / kThreads; ++i) {
        const WindowPosition position = window_position(g_, depth + row_of<B>(i), g_.depth);
#pragma unroll
        for (int piece = 0; piece < B::chunk / kVector; ++piece) {
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
  __device__ static void load_rows(int vector, const T* from, int first_row, int rows,
                                   int first_column, int columns, int pitch, uint32_t to) {
    with_vector_of<T>(vector, [&]<int kVector>() {
#pragma unroll
      for (int i = 0; i < Operand::rows * Operand::chunks / kThreads; ++i) {
        const int row = row_of<Operand>(i);
#pragma unroll
        for (int piece = 0; piece < A::chunk; piece += kVector) {
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
    with_vector_of<T>(g_.b_vector, [&]<int kVector>() {
#pragma unroll
      for (int i = 0; i < B::rows * B::chunks / kThreads; ++i) {
        const int row = row_of<B>(i), k = depth + row;
        int output;
        const int tap = g_.by_channels.split(k, output);
        const int start = output * g_.w_output + tap * g_.columns + first_column_;
#pragma unroll
        for (int piece = 0; piece < A::chunk; piece += kVector) {
          const int column = column_of<B>() + piece;
          const bool inside = k < g_.depth && first_column_ + column < g_.columns;
          copy<kVector>(to, row, B::pitch, column, b_, start + column, inside);
        }
      }
    });
  }

  const ImplicitGemmGeometry& g_;
  const FilterTap* taps_;
  const T *a_, *b_;
  int first_row_, first_column_;
  WindowPosition positions_[kRows];  // one for each row of A that this thread loads
};

#endif

}  // namespace crema

// How the kernel of implicit_gemm_kernel.cuh loads plain matrices. These kernels are bound by the
// latency of a warp's instruction sequence, so everything that steps have in common is computed
// once.
#pragma once

#include "kernels/conv/implicit_gemm/implicit_gemm.cuh"

namespace crema {

#ifdef __CUDACC__

// A thread's share of one operand's tiles: chunks of 8 elements, kRows rows apart. Steps are loaded
// in order.
// kAcross: rows of the matrix run along the reduction, not across it. kTurn: the block's thread
// that has the first chunk.
template <typename T, typename Tile, bool kAcross, int kThreads, int kTurn, bool kReluMask>
struct MatrixTile {
  static constexpr int kRows = kThreads / Tile::chunks;
  static constexpr int kTimes = (Tile::rows + kRows - 1) / kRows;
  static_assert(kThreads % Tile::chunks == 0 && (kTimes == 1 || Tile::rows % kRows == 0));
  const T* from;
  int64_t relu_y;  // offset in elements from a value to the one of y that masks it
  int row, position, pitch;
  int wide, left;  // elements from the first chunk to the end, across and along the reduction
  bool ones;       // the column after the last is 1 in each row

  __device__ void start(const T* matrix, int row_pitch, int first, int count, int depth,
                        int all_depth) {
    const int chunk = (static_cast<int>(threadIdx.x) + kThreads - kTurn) % kThreads;
    const int column = chunk % Tile::chunks * 8;
    row = chunk / Tile::chunks;
    position = (row * Tile::pitch + column) * 2;
    pitch = row_pitch;
    wide = count - first - (kAcross ? column : row);
    left = all_depth - depth - (kAcross ? row : column);
    from = matrix + (kAcross ? (depth + row) * pitch + first + column
                             : (first + row) * pitch + depth + column);
    ones = false;
  }

  // If false, load() must not be called.
  __device__ bool has_share() const { return row < Tile::rows; }
  // Loads the next step's share.
  template <int kVector>
  __device__ void load(uint32_t to, uint32_t relu_y_to) {
#pragma unroll
    for (int i = 0; i < kTimes; ++i) {
      const bool inside_row = i * kRows < (kAcross ? left : wide);
#pragma unroll
      for (int piece = 0; piece < 8 / kVector; ++piece) {
        const bool inside = inside_row && piece * kVector < (kAcross ? wide : left);
        const uint32_t at = position + (i * kRows * Tile::pitch + piece * kVector) * 2;
        const T* const source = from + i * kRows * pitch + piece * kVector;
        if (kAcross && ones && piece * kVector == wide) {
          store_one<T, kVector>(to + at, inside_row);
        } else {
          copy_async<kVector * 2>(to + at, source, inside);
        }
        if constexpr (kReluMask) copy_async<kVector * 2>(relu_y_to + at, source + relu_y, inside);
      }
    }
    from += kAcross ? kTileDepth * pitch : kTileDepth;
    left -= kTileDepth;
  }
};

template <typename T, typename Shape, ConvCall kCall, bool kReluMask>
struct MatrixOperands {
  using Layout = SharedLayout<Shape, kCall, kReluMask>;
  using TileA = typename Layout::A;
  using TileB = typename Layout::B;
  MatrixTile<T, TileA, Layout::a_transposed, Shape::threads, 0, kReluMask> a;
  MatrixTile<T, TileB, Layout::b_transposed, Shape::threads,
             TileA::rows * TileA::chunks % Shape::threads, false>
      b;

  // depth: the block's start along the reduction.
  __device__ void start(const ImplicitGemmParams& n, const GroupOperands<T>& from, int first_row,
                        int first_column, int depth) {
    constexpr bool kWgrad = kCall == ConvCall::wgrad;
    const ImplicitGemmGeometry& g = n.geometry;
    a.start(from.a, kWgrad ? g.a_pixel : g.pixel, first_row, g.rows, depth, g.depth);
    if constexpr (kReluMask) a.relu_y = from.relu_y - from.a;
    const bool bias = kWgrad && n.operands.db;
    b.start(from.b, kWgrad ? g.pixel : g.w_output, first_column, g.columns - bias, depth, g.depth);
    b.ones = bias;
  }
  // Loads the next `steps` steps.
  __device__ void load(const ImplicitGemmParams& n, const GroupOperands<T>&, int, int, int,
                       int steps, uint32_t to) {
    if (a.has_share()) {
      with_vector(n.geometry.a_vector, [&]<int kVector>() {
        for (int i = 0; i < steps; ++i) {
          const uint32_t tile = to + i * Layout::stage;
          a.template load<kVector>(tile, tile + Layout::relu_y_at);
        }
      });
    }
    if (b.has_share()) {
      with_vector(n.geometry.b_vector, [&]<int kVector>() {
        for (int i = 0; i < steps; ++i)
          b.template load<kVector>(to + i * Layout::stage + Layout::b_at, 0);
      });
    }
  }
};

#endif

}  // namespace crema

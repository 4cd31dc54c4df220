// The parameters of the kernel of implicit_gemm_kernel.cuh, and its loads into shared memory and
// registers.
#pragma once

#include "kernels/conv/implicit_gemm/implicit_gemm.h"
#include "kernels/core/cluster.cuh"
#include "kernels/core/divisor.h"
#include "kernels/core/mma.cuh"
#ifdef __CUDACC__
#include "kernels/core/warp.cuh"
#endif

namespace crema {

// The location of element k of a window: `shift` elements after the window's first pixel (only the
// channel, if coordinates are divided by a stride), and y and x relative to its coordinates.
struct FilterTap {
  int shift;
  short y, x;
};
constexpr short kOutside = -32768;  // y of elements past the last k

// All offsets and strides are in elements, of one group.
struct ImplicitGemmGeometry {
  int rows, columns, depth;
  // The image that is gathered from: x, or dy for dgrad.
  int height, width, channels, pixel, image;  // pixel, image: strides
  int start[2], step[2], tap[2];  // position p, tap t: coordinate start + p * step + t * tap
  int kernel_width;
  Divisor by_channels, by_stride[2];
  bool strided;                      // divide coordinates by the stride; only exact results count
  Divisor by_plane, by_row;          // positions of the other image: in total, and per row
  int a_vector, b_vector;            // elements that are contiguous in every case: 2, 4 or 8
  int a_pixel, out_pixel, w_output;  // strides of dy's positions, of the result's, of w's outputs
  int groups, a_group, b_group, out_group, bias_group;
};

// How the reduction is divided.
struct ImplicitGemmSplit {
  int pieces, steps_each;
  int cluster_bits;  // log2 of the blocks per cluster, which have one piece each
};

// Shared memory of the kernels for plain matrices.
struct ImplicitGemmStages {
  int steps;     // per wait
  int slots_at;  // offset of the sums of all pieces, in bytes
};

struct ImplicitGemmOperands {
  const void *a, *relu_y, *b, *bias;
  const void* added;  // to the result before the ReLU, like out; null: nothing
  void* out;
  float* db;
  const FilterTap* taps;  // one for each a_vector (for wgrad: b_vector) elements along k
  bool accumulate_w, accumulate_b, relu;
  DropoutMask dropout;
  DropoutLayout dropout_layout;
  float factor;  // of the result: the dropout's, or that of the gradients
  float* partial_sums;
  unsigned* counters;
};

// The kernel's parameters.
struct ImplicitGemmParams {
  ImplicitGemmGeometry geometry;  // set by implicit_gemm_geometry()
  ImplicitGemmSplit split;        // ImplicitGemm::launch()
  ImplicitGemmStages stages;      // launch_matrix_gemm(); zero for windows
  ImplicitGemmOperands operands;  // ImplicitGemm::launch()
};

// bias_column: with the extra column of wgrad that is the bias gradient.
ImplicitGemmGeometry implicit_gemm_geometry(const ConvCase& c, ConvCall call,
                                            bool bias_column = false);
std::vector<FilterTap> filter_taps(const ConvCase& c, ConvCall call);

constexpr int kTileDepth = 32, kGatherStages = 4;

// kWarpsK: warps that compute the same results and split the reduction between them.
template <int kM, int kN, int kWarpsM, int kWarpsN, int kWarpsK = 1, bool kMatrix = false>
struct TileShape {
  static constexpr int m = kM, n = kN, warps_m = kWarpsM, warps_n = kWarpsN, warps_k = kWarpsK;
  static constexpr bool is_matrix_product = kMatrix;
  static constexpr int threads = kWarpsM * kWarpsN * kWarpsK * 32;
};

// The tile of a block, by ImplicitGemm's choice: for windows, and for plain matrices.
struct TileExtent {
  int rows, columns;
};
constexpr int kTileShapes = 5;
constexpr TileExtent kGatheredTiles[kTileShapes] = {
    {32, 32}, {64, 32}, {64, 64}, {128, 32}, {128, 64}};
constexpr TileExtent kMatrixTiles[kTileShapes] = {
    {32, 32}, {64, 32}, {32, 64}, {64, 64}, {128, 64}};

// An operand's tile in shared memory: kWide elements along M or N, kTileDepth along K, contiguous
// along K or (transposed) across it. Rows are padded by 16 bytes, so that ldmatrix has no bank
// conflicts.
template <int kWide, bool kTransposed>
struct SharedTile {
  static constexpr int pitch = (kTransposed ? kWide : kTileDepth) + 8;
  static constexpr int rows = kTransposed ? kTileDepth : kWide;
  static constexpr int bytes = rows * pitch * 2;
  static constexpr int chunks = (kTransposed ? kWide : kTileDepth) / 8;  // of 8 elements per row
};

template <typename Shape, ConvCall kCall, bool kReluMask>
struct SharedLayout {
  static constexpr bool a_transposed = kCall == ConvCall::wgrad;
  static constexpr bool b_transposed = kCall != ConvCall::fprop;
  using A = SharedTile<Shape::m, a_transposed>;
  using B = SharedTile<Shape::n, b_transposed>;
  static constexpr int relu_y_at = A::bytes, b_at = A::bytes * (kReluMask ? 2 : 1);
  static constexpr int stage = b_at + B::bytes;
  static constexpr int bytes = stage * kGatherStages;
};

// The GPU's limits: bytes of dynamic shared memory per block; multiprocessors.
struct ImplicitGemmLimits {
  int shared_bytes, processors;
};

// Launches n's kernel with this tile shape on gpu.stream, for windows or for plain matrices. n
// lacks `stages`.
void launch_gathered_gemm(const Gpu& gpu, const ImplicitGemmParams& n, ConvCall call, DType dtype,
                          int shape);
void launch_matrix_gemm(const Gpu& gpu, const ImplicitGemmParams& n,
                        const ImplicitGemmLimits& limits, ConvCall call, DType dtype, int shape);

#ifdef __CUDACC__

// The operands of one group.
template <typename T>
struct GroupOperands {
  const T *a, *relu_y, *b;
};

// The window of a position: element offset and coordinates of its first pixel.
struct WindowPosition {
  int at, y, x;
};
__device__ inline WindowPosition window_position(const ImplicitGemmGeometry& g, int position,
                                                 int count) {
  int rest, column;
  const int image = g.by_plane.split(position, rest);
  const int row = g.by_row.split(rest, column);
  if (position >= count) return {0, -(1 << 20), 0};  // every tap is outside
  const int y = g.start[0] + row * g.step[0], x = g.start[1] + column * g.step[1];
  return {image * g.image + (g.strided ? 0 : (y * g.width + x) * g.pixel), y, x};
}

// The offset of a tap of a position's window; false: outside of the image.
__device__ inline bool filter_tap(const ImplicitGemmGeometry& g, const WindowPosition& position,
                                  const FilterTap& tap, int& at) {
  int y = position.y + tap.y, x = position.x + tap.x;
  at = position.at + tap.shift;
  if (!g.strided)
    return static_cast<unsigned>(y) < static_cast<unsigned>(g.height) &&
           static_cast<unsigned>(x) < static_cast<unsigned>(g.width);
  if (y < 0 || x < 0) return false;
  int rest_y, rest_x;
  y = g.by_stride[0].split(y, rest_y);
  x = g.by_stride[1].split(x, rest_x);
  at += (y * g.width + x) * g.pixel;
  return rest_y == 0 && rest_x == 0 && y < g.height && x < g.width;
}

// Rows are positions of the other image, columns k = (tap, channel) of the gathered one.
template <typename T, typename Tile, int kThreads, bool kReluMask>
struct GatheredRows {
  static constexpr int kRows = Tile::rows * Tile::chunks / kThreads;
  WindowPosition positions[kRows];

  __device__ void start(const ImplicitGemmGeometry& g, int first_row) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = (static_cast<int>(threadIdx.x) + i * kThreads) / Tile::chunks;
      positions[i] = window_position(g, first_row + row, g.rows);
    }
  }
  __device__ void load(const ImplicitGemmGeometry& g, const FilterTap* taps,
                       const GroupOperands<T>& from, int first_k, uint32_t to,
                       uint32_t relu_y_to) const {
    const int chunk = static_cast<int>(threadIdx.x) % Tile::chunks;
    with_vector(g.a_vector, [&]<int kVector>() {
#pragma unroll
      for (int piece = 0; piece < 8 / kVector; ++piece) {
        const FilterTap tap = taps[(first_k + chunk * 8) / kVector + piece];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const int row = (static_cast<int>(threadIdx.x) + i * kThreads) / Tile::chunks;
          int at;
          const bool inside = filter_tap(g, positions[i], tap, at);
          at = inside ? at : 0;
          const uint32_t position = (row * Tile::pitch + chunk * 8 + piece * kVector) * 2;
          copy_async<kVector * 2>(to + position, from.a + at, inside);
          if constexpr (kReluMask)
            copy_async<kVector * 2>(relu_y_to + position, from.relu_y + at, inside);
        }
      }
    });
  }
};

// Stores kVector elements: a 1 followed by zeros; only zeros when not `wanted`.
template <typename T, int kVector>
__device__ void store_one(uint32_t to, bool wanted) {
#pragma unroll
  for (int k = 0; k < kVector; k += 2) {
    const uint32_t pair = wanted && k == 0 ? T(1.f).bits : 0;
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to + k * 2), "r"(pair));
  }
}

// Loads rows of a matrix: element (row, column) is at row * pitch + column.
template <typename T, typename Tile, int kThreads, bool kReluMask>
__device__ void load_matrix(int vector, const T* from, const T* relu_y, int first_row, int rows,
                            int first_column, int columns, int pitch, uint32_t to,
                            uint32_t relu_y_to) {
  with_vector(vector, [&]<int kVector>() {
#pragma unroll
    for (int chunk = static_cast<int>(threadIdx.x); chunk < Tile::rows * Tile::chunks;
         chunk += kThreads) {
      const int row = chunk / Tile::chunks;
#pragma unroll
      for (int piece = 0; piece < 8 / kVector; ++piece) {
        const int column = chunk % Tile::chunks * 8 + piece * kVector;
        const bool inside = first_row + row < rows && first_column + column < columns;
        const int at = inside ? (first_row + row) * pitch + first_column + column : 0;
        const uint32_t position = (row * Tile::pitch + column) * 2;
        copy_async<kVector * 2>(to + position, from + at, inside);
        if constexpr (kReluMask) copy_async<kVector * 2>(relu_y_to + position, relu_y + at, inside);
      }
    }
  });
}

// Loads w for dgrad: row k = (tap, output), column a channel of x.
template <typename T, typename Tile, int kThreads>
__device__ void load_transposed_weights(const ImplicitGemmGeometry& g, const T* from, int first_k,
                                        int first_column, uint32_t to) {
  with_vector(g.b_vector, [&]<int kVector>() {
#pragma unroll
    for (int chunk = static_cast<int>(threadIdx.x); chunk < Tile::rows * Tile::chunks;
         chunk += kThreads) {
      const int row = chunk / Tile::chunks, k = first_k + row;
      int output;
      const int tap = g.by_channels.split(k, output);
      const int start = output * g.w_output + tap * g.columns;
#pragma unroll
      for (int piece = 0; piece < 8 / kVector; ++piece) {
        const int column = chunk % Tile::chunks * 8 + piece * kVector;
        const bool inside = k < g.depth && first_column + column < g.columns;
        const int at = inside ? start + first_column + column : 0;
        copy_async<kVector * 2>(to + (row * Tile::pitch + column) * 2, from + at, inside);
      }
    }
  });
}

// Operand x for wgrad: row p is a position of y, column k = (tap, channel). An extra last column is
// all ones: its sums are the bias gradient.
template <typename T, typename Tile, int kThreads>
struct GatheredColumns {
  static_assert(kThreads % Tile::chunks == 0, "a thread keeps its columns");
  FilterTap taps[4];
  int column;  // of the bias, from this thread's first; negative or above 7: not here

  __device__ void start(const ImplicitGemmGeometry& g, const FilterTap* all, bool bias,
                        int first_k) {
    const int k = first_k + static_cast<int>(threadIdx.x) % Tile::chunks * 8;
    column = bias ? g.columns - 1 - k : -1;
    with_vector(g.b_vector, [&]<int kVector>() {
#pragma unroll
      for (int piece = 0; piece < 8 / kVector; ++piece) taps[piece] = all[k / kVector + piece];
    });
  }
  __device__ void load(const ImplicitGemmGeometry& g, const T* from, int first_position,
                       uint32_t to) const {
    with_vector(g.b_vector, [&]<int kVector>() {
#pragma unroll
      for (int chunk = static_cast<int>(threadIdx.x); chunk < Tile::rows * Tile::chunks;
           chunk += kThreads) {
        const int row = chunk / Tile::chunks;
        const WindowPosition position = window_position(g, first_position + row, g.depth);
        const uint32_t goal = to + (row * Tile::pitch + chunk % Tile::chunks * 8) * 2;
#pragma unroll
        for (int piece = 0; piece < 8 / kVector; ++piece) {
          int at;
          const bool inside = filter_tap(g, position, taps[piece], at);
          at = inside ? at : 0;
          if (column == piece * kVector) {
            store_one<T, kVector>(goal + piece * kVector * 2, first_position + row < g.depth);
          } else {
            copy_async<kVector * 2>(goal + piece * kVector * 2, from + at, inside);
          }
        }
      }
    });
  }
};

// Loads both operands' tiles for the step that starts at `depth` along the reduction.
template <typename T, typename Shape, ConvCall kCall, bool kReluMask>
struct GatheredOperands {
  using Layout = SharedLayout<Shape, kCall, kReluMask>;
  using A = typename Layout::A;
  using B = typename Layout::B;
  static constexpr bool kWgrad = kCall == ConvCall::wgrad;
  std::conditional_t<kWgrad, GatheredColumns<T, B, Shape::threads>,
                     GatheredRows<T, A, Shape::threads, kReluMask>>
      gathered;

  __device__ void start(const ImplicitGemmParams& n, const GroupOperands<T>&, int first_row,
                        int first_column, int) {
    if constexpr (kWgrad) {
      gathered.start(n.geometry, n.operands.taps, n.operands.db, first_column);
    } else {
      gathered.start(n.geometry, first_row);
    }
  }
  __device__ void load(const ImplicitGemmParams& n, const GroupOperands<T>& from, int first_row,
                       int first_column, int depth, int, uint32_t to) {
    const ImplicitGemmGeometry& g = n.geometry;
    const uint32_t relu_y_to = to + Layout::relu_y_at, b_to = to + Layout::b_at;
    if constexpr (kWgrad) {
      load_matrix<T, A, Shape::threads, kReluMask>(g.a_vector, from.a, from.relu_y, depth, g.depth,
                                                   first_row, g.rows, g.a_pixel, to, relu_y_to);
      gathered.load(g, from.b, depth, b_to);
    } else {
      gathered.load(g, n.operands.taps, from, depth, to, relu_y_to);
      if constexpr (kCall == ConvCall::fprop) {
        load_matrix<T, B, Shape::threads, false>(g.b_vector, from.b, nullptr, first_column,
                                                 g.columns, depth, g.depth, g.w_output, b_to, 0);
      } else {
        load_transposed_weights<T, B, Shape::threads>(g, from.b, depth, first_column, b_to);
      }
    }
  }
};

// Load the fragments of one warp: 16 x 16 of `a`, two of 16 x 8 of `b`.
template <typename Tile, bool kTransposed>
__device__ void load_a(uint32_t (&to)[4], uint32_t from, int row, int depth) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (kTransposed) {
    const int k = depth + (lane & 7) + (lane >> 4 & 1) * 8, m = row + (lane >> 3 & 1) * 8;
    load_transposed(to, from + (k * Tile::pitch + m) * 2);
  } else {
    load_matrices(to, from + ((row + lane % 16) * Tile::pitch + depth + lane / 16 * 8) * 2);
  }
}
template <typename Tile, bool kTransposed>
__device__ void load_b(uint32_t (&to)[4], uint32_t from, int column, int depth) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (kTransposed) {
    const int k = depth + (lane & 7) + (lane >> 3 & 1) * 8, c = column + (lane >> 4 & 1) * 8;
    load_transposed(to, from + (k * Tile::pitch + c) * 2);
  } else {
    const int c = column + (lane & 7) + (lane >> 4 & 1) * 8, k = depth + (lane >> 3 & 1) * 8;
    load_matrices(to, from + (c * Tile::pitch + k) * 2);
  }
}

__device__ inline void add_to(float4& sum, const float4& more) {
  sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
}
__device__ inline void add_to(float2& sum, const float2& more) { sum.x += more.x, sum.y += more.y; }

#endif

}  // namespace crema

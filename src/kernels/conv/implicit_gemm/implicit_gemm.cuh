// How the kernel of implicit_gemm_kernel.cuh loads its operands into shared memory and from there
// into registers.
#pragma once

#include "kernels/conv/implicit_gemm/implicit_gemm.h"
#include "kernels/core/cluster.cuh"
#include "kernels/core/mma.cuh"
#ifdef __CUDACC__
#include "kernels/core/warp.cuh"
#endif

namespace crema {

// Where the elements k of a window lie: `shift` elements from the window's first pixel (only the
// channel, where coordinates are divided by a stride), y and x from its coordinates.
struct GatherTap {
  int shift;
  short y, x;
};
constexpr short kOutside = -32768;  // y of what is behind the last k

// What a kernel knows. All offsets are in elements of one group.
struct GatherNumbers {
  const void *a, *sign, *b, *bias;
  void* out;
  float* db;
  int rows, columns, depth;
  bool accumulate_w, accumulate_b, relu;
  DropoutMask dropout;
  DropoutDraws draws;
  // The image that is gathered from: x, or dy for the gradient of the data.
  int height, width, channels, pixel, image;  // pixel, image: elements from one to the next
  int start[2], step[2], tap[2];  // place p, tap t: coordinate start + p * step + t * tap
  int kernel_width;
  FastDivide by_channels, by_stride[2];
  bool strided;                      // divide the coordinate by the stride, whole results count
  FastDivide by_plane, by_row;       // places of the other image: in all, and in a row
  int a_vector, b_vector;            // elements that lie side by side in every case: 2, 4 or 8
  int a_pixel, out_pixel, w_output;  // strides of dy's places, of the result's, of w's outputs
  int a_group, b_group, out_group, bias_group;
  const GatherTap* taps;  // one for each a_vector (for dw: b_vector) elements along k
  int groups, pieces, steps_each;
  int cluster_bits;   // 2 to their power blocks, with a piece each, share their memory
  int stage_steps;    // of plain matrices: steps that are waited for together
  int slots_at;       // bytes from the start of shared memory to the sums of all pieces
  int room, at_once;  // bytes of shared memory that a block may have; blocks that run side by side
  float* parts;
  unsigned* counters;
};

// Everything but the pointers, pieces and steps.
GatherNumbers gather_numbers(const ConvCase& c, GatherRole role);
std::vector<GatherTap> gather_taps(const ConvCase& c, GatherRole role);
// Each window is one place, in the order of y's: nothing is gathered, all operands are matrices.
bool plain_matrices(const ConvCase& c);

constexpr int kGatherDepth = 32, kGatherStages = 4;

// kWarpsK: warps that share the results of one place and the summed axis between them.
template <int kM, int kN, int kWarpsM, int kWarpsN, int kWarpsK = 1, bool kPlain = false>
struct GatherShape {
  static constexpr int m = kM, n = kN, warps_m = kWarpsM, warps_n = kWarpsN, warps_k = kWarpsK;
  static constexpr bool plain = kPlain;  // for plain_matrices()
  static constexpr int threads = kWarpsM * kWarpsN * kWarpsK * 32;
};

// What blocks compute, by GatherProduct's choice: for windows, and for plain matrices.
struct GatherResults {
  int rows, columns;
};
constexpr int kGatherShapes = 5;
constexpr GatherResults kGatheredResults[kGatherShapes] = {
    {32, 32}, {64, 32}, {64, 64}, {128, 32}, {128, 64}};
constexpr GatherResults kPlainResults[kGatherShapes] = {
    {32, 32}, {64, 32}, {32, 64}, {64, 64}, {128, 64}};

// Bytes of one operand's tile: `wide` numbers that are not summed over by 32 that are, lying along
// the summed axis or (transposed) across it. Rows are 16 bytes apart from a multiple of 128, so
// that matrix loads meet no bank twice.
template <int kWide, bool kTransposed>
struct GatherTile {
  static constexpr int pitch = (kTransposed ? kWide : kGatherDepth) + 8;
  static constexpr int rows = kTransposed ? kGatherDepth : kWide;
  static constexpr int bytes = rows * pitch * 2;
  static constexpr int chunks = (kTransposed ? kWide : kGatherDepth) / 8;  // of 8 numbers in a row
};

template <typename Shape, GatherRole kRole, bool kSign>
struct GatherLayout {
  static constexpr bool a_transposed = kRole == GatherRole::weights;
  static constexpr bool b_transposed = kRole != GatherRole::forward;
  using A = GatherTile<Shape::m, a_transposed>;
  using B = GatherTile<Shape::n, b_transposed>;
  static constexpr int sign_at = A::bytes, b_at = A::bytes * (kSign ? 2 : 1);
  static constexpr int stage = b_at + B::bytes;
  static constexpr int bytes = stage * kGatherStages;
};

// On gpu.stream: n's kernel with this shape of blocks, of those for windows or of those for plain
// matrices. n lacks what depends on the shape.
void start_gathered(const Gpu& gpu, const GatherNumbers& n, GatherRole role, DType dtype,
                    int shape);
void start_plain(const Gpu& gpu, const GatherNumbers& n, GatherRole role, DType dtype, int shape);

#ifdef __CUDACC__

// The window of a place: element and coordinates of its first pixel.
struct GatherPlace {
  int at, y, x;
};
__device__ inline GatherPlace gather_place(const GatherNumbers& n, int place, int count) {
  int rest, column;
  const int image = n.by_plane.split(place, rest);
  const int row = n.by_row.split(rest, column);
  if (place >= count) return {0, -(1 << 20), 0};  // every tap is outside
  const int y = n.start[0] + row * n.step[0], x = n.start[1] + column * n.step[1];
  return {image * n.image + (n.strided ? 0 : (y * n.width + x) * n.pixel), y, x};
}

// Where a tap of a place lies; false: outside of the image.
__device__ inline bool gather_tap(const GatherNumbers& n, const GatherPlace& place,
                                  const GatherTap& tap, int& at) {
  int y = place.y + tap.y, x = place.x + tap.x;
  at = place.at + tap.shift;
  if (!n.strided)
    return static_cast<unsigned>(y) < static_cast<unsigned>(n.height) &&
           static_cast<unsigned>(x) < static_cast<unsigned>(n.width);
  if (y < 0 || x < 0) return false;
  int rest_y, rest_x;
  y = n.by_stride[0].split(y, rest_y);
  x = n.by_stride[1].split(x, rest_x);
  at += (y * n.width + x) * n.pixel;
  return rest_y == 0 && rest_x == 0 && y < n.height && x < n.width;
}

// Rows are places of the gathered image's partner, columns k = (tap, channel).
template <typename T, typename Tile, int kThreads, bool kSign>
struct GatheredRows {
  static constexpr int kRows = Tile::rows * Tile::chunks / kThreads;
  GatherPlace places[kRows];

  __device__ void start(const GatherNumbers& n, int first_row) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = (static_cast<int>(threadIdx.x) + i * kThreads) / Tile::chunks;
      places[i] = gather_place(n, first_row + row, n.rows);
    }
  }
  __device__ void load(const GatherNumbers& n, int first_k, uint32_t to, uint32_t sign_to) const {
    const int chunk = static_cast<int>(threadIdx.x) % Tile::chunks;
    with_vector(n.a_vector, [&]<int kVector>() {
#pragma unroll
      for (int piece = 0; piece < 8 / kVector; ++piece) {
        const GatherTap tap = n.taps[(first_k + chunk * 8) / kVector + piece];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          const int row = (static_cast<int>(threadIdx.x) + i * kThreads) / Tile::chunks;
          int at;
          const bool inside = gather_tap(n, places[i], tap, at);
          at = inside ? at : 0;
          const uint32_t place = (row * Tile::pitch + chunk * 8 + piece * kVector) * 2;
          copy_async<kVector * 2>(to + place, static_cast<const T*>(n.a) + at, inside);
          if constexpr (kSign)
            copy_async<kVector * 2>(sign_to + place, static_cast<const T*>(n.sign) + at, inside);
        }
      }
    });
  }
};

// A 1 and zeros behind it, kVector numbers; zeros alone when not `wanted`.
template <typename T, int kVector>
__device__ void store_one(uint32_t to, bool wanted) {
#pragma unroll
  for (int k = 0; k < kVector; k += 2) {
    const uint32_t pair = wanted && k == 0 ? T(1.f).bits : 0;
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to + k * 2), "r"(pair));
  }
}

// Rows of a matrix: element (row, column) at row * pitch + column.
template <typename T, typename Tile, int kThreads, bool kSign>
__device__ void load_matrix(int vector, const void* from, const void* sign, int first_row, int rows,
                            int first_column, int columns, int pitch, uint32_t to,
                            uint32_t sign_to) {
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
        const uint32_t place = (row * Tile::pitch + column) * 2;
        copy_async<kVector * 2>(to + place, static_cast<const T*>(from) + at, inside);
        if constexpr (kSign)
          copy_async<kVector * 2>(sign_to + place, static_cast<const T*>(sign) + at, inside);
      }
    }
  });
}

// w for the gradient of the data: row k = (tap, output), column a channel of x.
template <typename T, typename Tile, int kThreads>
__device__ void load_turned_weights(const GatherNumbers& n, int first_k, int first_column,
                                    uint32_t to) {
  with_vector(n.b_vector, [&]<int kVector>() {
#pragma unroll
    for (int chunk = static_cast<int>(threadIdx.x); chunk < Tile::rows * Tile::chunks;
         chunk += kThreads) {
      const int row = chunk / Tile::chunks, k = first_k + row;
      int output;
      const int tap = n.by_channels.split(k, output);
      const int start = output * n.w_output + tap * n.columns;
#pragma unroll
      for (int piece = 0; piece < 8 / kVector; ++piece) {
        const int column = chunk % Tile::chunks * 8 + piece * kVector;
        const bool inside = k < n.depth && first_column + column < n.columns;
        const int at = inside ? start + first_column + column : 0;
        copy_async<kVector * 2>(to + (row * Tile::pitch + column) * 2,
                                static_cast<const T*>(n.b) + at, inside);
      }
    }
  });
}

// x for the gradient of the weights: row p is a place of y, column k = (tap, channel); the column
// behind the last is all ones, its sums are the bias's gradient.
template <typename T, typename Tile, int kThreads>
struct GatheredColumns {
  static_assert(kThreads % Tile::chunks == 0, "a thread keeps its columns");
  GatherTap taps[4];
  int column;  // of the bias, from this thread's first; negative or more than 7: not here

  __device__ void start(const GatherNumbers& n, int first_k) {
    const int k = first_k + static_cast<int>(threadIdx.x) % Tile::chunks * 8;
    column = n.db ? n.columns - 1 - k : -1;
    with_vector(n.b_vector, [&]<int kVector>() {
#pragma unroll
      for (int piece = 0; piece < 8 / kVector; ++piece) taps[piece] = n.taps[k / kVector + piece];
    });
  }
  __device__ void load(const GatherNumbers& n, int first_place, uint32_t to) const {
    with_vector(n.b_vector, [&]<int kVector>() {
#pragma unroll
      for (int chunk = static_cast<int>(threadIdx.x); chunk < Tile::rows * Tile::chunks;
           chunk += kThreads) {
        const int row = chunk / Tile::chunks;
        const GatherPlace place = gather_place(n, first_place + row, n.depth);
        const uint32_t goal = to + (row * Tile::pitch + chunk % Tile::chunks * 8) * 2;
#pragma unroll
        for (int piece = 0; piece < 8 / kVector; ++piece) {
          int at;
          const bool inside = gather_tap(n, place, taps[piece], at);
          at = inside ? at : 0;
          if (column == piece * kVector) {
            store_one<T, kVector>(goal + piece * kVector * 2, first_place + row < n.depth);
          } else {
            copy_async<kVector * 2>(goal + piece * kVector * 2, static_cast<const T*>(n.b) + at,
                                    inside);
          }
        }
      }
    });
  }
};

// How a block loads both operands' tiles of the step that begins at `depth` of the summed axis.
template <typename T, typename Shape, GatherRole kRole, bool kSign>
struct GatheredOperands {
  using Layout = GatherLayout<Shape, kRole, kSign>;
  using A = typename Layout::A;
  using B = typename Layout::B;
  static constexpr bool kWeights = kRole == GatherRole::weights;
  std::conditional_t<kWeights, GatheredColumns<T, B, Shape::threads>,
                     GatheredRows<T, A, Shape::threads, kSign>>
      gathered;

  __device__ void start(const GatherNumbers& n, int first_row, int first_column, int) {
    gathered.start(n, kWeights ? first_column : first_row);
  }
  __device__ void load(const GatherNumbers& n, int first_row, int first_column, int depth, int,
                       uint32_t to) {
    const uint32_t sign_to = to + Layout::sign_at, b_to = to + Layout::b_at;
    if constexpr (kWeights) {
      load_matrix<T, A, Shape::threads, kSign>(n.a_vector, n.a, n.sign, depth, n.depth, first_row,
                                               n.rows, n.a_pixel, to, sign_to);
      gathered.load(n, depth, b_to);
    } else {
      gathered.load(n, depth, to, sign_to);
      if constexpr (kRole == GatherRole::forward) {
        load_matrix<T, B, Shape::threads, false>(n.b_vector, n.b, nullptr, first_column, n.columns,
                                                 depth, n.depth, n.w_output, b_to, 0);
      } else {
        load_turned_weights<T, B, Shape::threads>(n, depth, first_column, b_to);
      }
    }
  }
};

// The fragments of one warp: 16 x 16 of `a`, twice 16 x 8 of `b`.
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

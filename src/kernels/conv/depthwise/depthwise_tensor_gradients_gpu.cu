// Both gradients of a depthwise convolution in 16 bits in one pass over x and dy; tiling:
// depthwise_tensor.cuh. A step along an axis is `stride` positions of the padded x and one of dy:
// positions stride * i + b meet dy at i - q through the taps b + stride * q. A row of dy is added
// to the rows of dx that it contributes to, the first `stride` of which are then finished, and
// multiplied by the rows of x that it meets; these are loaded before it and stay in registers. In
// products for dx operand B holds diagonal matrices of the taps of two q. In those for dw operand A
// holds the eight channels of dy at two q, operand B those of x, and of the sums over sixteen
// positions only the diagonals count. These sums stay in registers throughout.
#include <algorithm>

#include "device/programmatic_launch.h"
#include "kernels/conv/depthwise/depthwise_parts.cuh"
#include "kernels/conv/depthwise/depthwise_tensor.cuh"

namespace crema {
namespace {

// Tiles of sixteen columns, and warps: as many as registers allow.
CREMA_HD constexpr int tiles(int kernel, int stride) { return kernel == 3 && stride == 1 ? 2 : 1; }
CREMA_HD constexpr int warps(int kernel) { return kernel == 3 ? 8 : 6; }
constexpr int kSlots = 4;
// Rows of dy per step: with stride 1 a single row is too little work.
CREMA_HD constexpr int turns(int stride) { return stride == 1 ? 2 : 1; }
constexpr int kResident = 2;

template <int kKernel, int kStride>
struct Layout {
  static constexpr int kBefore = (kKernel - 1) / kStride, kMeets = kBefore + 1;
  static constexpr int kPairs = (kMeets + 1) / 2;  // of q
  // Each step i owns position i - kMiddle of dy, whatever the pad.
  static constexpr int kMiddle = (kKernel - 1) / 2 / kStride;
  static constexpr int kTiles = tiles(kKernel, kStride), kColumnGroups = 2 * kTiles;
  static constexpr int kColumns = kColumnGroups * (8 + kBefore);  // of dy
  static constexpr int kOwn = kStride * kColumnGroups;            // column groups of x, by planes
  static constexpr int kOwnBytes = kOwn * 8 * kPositionBytes;
  static constexpr int kRowsPerStep = turns(kStride);
  static_assert(kBefore % kRowsPerStep == 0);
  static constexpr int kRowBytes = kColumns * kPositionBytes + kStride * kOwnBytes;  // with x's
  static constexpr int kSlotBytes = kRowsPerStep * kRowBytes;
  static constexpr int kRingBytes = kSlots * kSlotBytes;
  static constexpr int kOutBytes = kStride * kOwnBytes;
  static constexpr int kSumBytes = (kKernel * kKernel + 1) * 64 * static_cast<int>(sizeof(float));
  static constexpr int kBytes = std::max(kRingBytes + 2 * kRowsPerStep * kOutBytes, kSumBytes);
  // Loads of x, four column groups each; of two, both are loaded twice.
  static constexpr int kLoads = (kOwn + 3) / 4;
  // Number of taps that meet columns of plane b.
  CREMA_HD static constexpr int meets(int b) { return (kKernel - b + kStride - 1) / kStride; }
};

template <typename T>
constexpr uint32_t kOnes = std::is_same_v<T, Half> ? 0x3C003C00u : 0x3F803F80u;

// Loads the rows of x that a row of dy is the first to meet, behind those that it meets, too.
template <int kKernel, int kStride>
__device__ __forceinline__ void load_window(
    uint32_t x_at, uint32_t (&window)[kKernel][Layout<kKernel, kStride>::kLoads][4]) {
  using L = Layout<kKernel, kStride>;
#pragma unroll
  for (int r = 0; r < kKernel; ++r) {
#pragma unroll
    for (int i = 0; i < L::kLoads; ++i) {
      if (r < kKernel - kStride) {
#pragma unroll
        for (int k = 0; k < 4; ++k) window[r][i][k] = window[(r + kStride) % kKernel][i][k];
      } else {
        load_transposed(window[r][i],
                        x_at + (r - kKernel + kStride) * L::kOwnBytes + i * 32 * kPositionBytes);
      }
    }
  }
}

// Adds the products of a row of dy with the window to a warp's sums for dw, and the row to those for
// db if it is `own`.
template <typename T, int kKernel, int kStride>
__device__ __forceinline__ void add_to_weights(
    const uint32_t (&channels_at)[Layout<kKernel, kStride>::kTiles], uint32_t row, int matrix,
    const uint32_t (&window)[kKernel][Layout<kKernel, kStride>::kLoads][4], bool own,
    float (&weights)[kKernel][kStride][Layout<kKernel, kStride>::kPairs][4], float (&biases)[4]) {
  using L = Layout<kKernel, kStride>;
#pragma unroll
  for (int i = 0; i < L::kTiles; ++i) {
#pragma unroll
    for (int j = 0; j < L::kPairs; ++j) {
      // An unpaired last q is loaded into both halves; only the first counts.
      uint32_t channels[4];
      const int q = 2 * j + 1 < L::kMeets ? matrix % 2 : 0;
      load_transposed(channels, channels_at[i] + row + (L::kBefore - 2 * j - q) * kPositionBytes);
#pragma unroll
      for (int r = 0; r < kKernel; ++r) {
#pragma unroll
        for (int b = 0; b < kStride; ++b) {
          const int eight = b * L::kColumnGroups + 2 * i;
          if (2 * j < L::meets(b))
            multiply_add<T>(weights[r][b][j], channels, window[r][eight / 4][eight % 4],
                            window[r][eight / 4][eight % 4 + 1]);
        }
      }
      if (j == L::kMiddle / 2 && own) multiply_add<T>(biases, channels, kOnes<T>, kOnes<T>);
    }
  }
}

// Adds the products of a row of dy to the rows of dx that it contributes to: `later`, and those that
// are then finished, which are written to `results` if `begun`.
template <typename T, int kKernel, int kStride>
__device__ __forceinline__ void add_to_data(
    const DepthwiseLane& lane, const uint32_t (&pairs_at)[Layout<kKernel, kStride>::kTiles],
    uint32_t last_at, uint32_t row, const uint32_t (&taps)[kKernel][kKernel], bool begun,
    float (&later)[kKernel - kStride][kStride][Layout<kKernel, kStride>::kTiles][4],
    unsigned char* results) {
  using L = Layout<kKernel, kStride>;
  uint32_t lasts[4];
  if (L::kMeets % 2) load_matrices(lasts, last_at + row);
#pragma unroll
  for (int i = 0; i < L::kTiles; ++i) {
    uint32_t pairs[L::kMeets / 2][4];
#pragma unroll
    for (int j = 0; j < L::kMeets / 2; ++j)
      load_matrices(pairs[j], pairs_at[i] + row - 2 * j * kPositionBytes);
#pragma unroll
    for (int r = 0; r < kKernel; ++r) {
#pragma unroll
      for (int b = 0; b < kStride; ++b) {
        float sums[4];
#pragma unroll
        for (int k = 0; k < 4; ++k)
          sums[k] = r < kKernel - kStride ? later[r % (kKernel - kStride)][b][i][k] : 0;
#pragma unroll
        for (int q = 0; q < L::meets(b); ++q) {
          const uint32_t tap = taps[r][b + q * kStride];
          if (q + 1 < L::meets(b) && q % 2 == 0) {
            multiply_add<T>(sums, pairs[q / 2], tap, taps[r][b + q * kStride + kStride]);
          } else if (q % 2 == 0 && q + 1 < L::kMeets) {
            multiply_add<T>(sums, pairs[q / 2][0], pairs[q / 2][1], tap);
          } else if (q % 2 == 0) {
            multiply_add<T>(sums, lasts[2 * i], lasts[2 * i + 1], tap);
          }
        }
        if (r < kStride) {
          if (begun)
            lane.template write<T>(results + r * L::kOwnBytes, (b * L::kColumnGroups + 2 * i) * 8,
                                   sums);
        } else {
#pragma unroll
          for (int k = 0; k < 4; ++k) later[r - kStride][b][i][k] = sums[k];
        }
      }
    }
  }
}

// Writes a warp's sums to shared memory, those for db behind the weights of all octets.
template <int kKernel, int kStride>
__device__ __forceinline__ void leave_sums(
    const DepthwiseLane& lane, int octets, float* set,
    const float (&weights)[kKernel][kStride][Layout<kKernel, kStride>::kPairs][4],
    const float (&biases)[4]) {
  constexpr int kTaps = kKernel * kKernel;
  constexpr int kHalf = Layout<kKernel, kStride>::kMiddle % 2 * 2;
  const int of_block = lane.octet * 8 + lane.lane / 4;  // the channel
  const auto leave = [&](int at, float even, float odd) {
    if (lane.lane / 8 == lane.lane % 4) set[at] = lane.lane / 4 % 2 ? odd : even;
  };
#pragma unroll
  for (int r = 0; r < kKernel; ++r) {
#pragma unroll
    for (int s = 0; s < kKernel; ++s) {
      const float(&sums)[4] = weights[r][s % kStride][s / kStride / 2];
      const int half = s / kStride % 2 * 2;
      leave(of_block * kTaps + r * kKernel + s, sums[half], sums[half + 1]);
    }
  }
  leave(octets * 8 * kTaps + of_block, biases[kHalf], biases[kHalf + 1]);
}

template <typename T, int kKernel, int kStride>
__global__ void __launch_bounds__(32 * warps(kKernel), kResident)
    depthwise_tensor_gradients(DepthwiseTensorTiling n, DepthwiseImage in, DepthwiseImage out,
                               int top, int left, const T* x, const T* dy, const T* w, T* dx,
                               PartSums parts) {
#if __CUDA_ARCH__ >= 800  // older cards lack these instructions: see supports()
  using L = Layout<kKernel, kStride>;
  constexpr int kRowsPerStep = L::kRowsPerStep, kBefore = L::kBefore, kTiles = L::kTiles;
  extern __shared__ __align__(128) unsigned char memory[];
  const DepthwiseView of_x{in, top, left, kStride, 0, 0};
  // Copies continue from strip to strip.
  DepthwiseOctetRowCursor<const T, L::kColumns, 1> gradient;
  DepthwiseOctetRowCursor<const T, L::kColumnGroups * 8, kStride> image;
  const DepthwiseOctet own(n);
  const int own_offset = own.offset();
  const int strip_sets = (n.strip_count + n.strips_per_block - 1) / n.strips_per_block,
            begin = static_cast<int>(blockIdx.y);
  const int stride = static_cast<int>(gridDim.y),
            steps = (n.rows + kBefore + kRowsPerStep - 1) / kRowsPerStep;
  int to_come = 0, next = begin;
  const auto fetch = [&](int slot) {
    if (to_come == 0 && next < strip_sets) {
      to_come = steps;
      const DepthwiseTile tile(n, own, next);
      next += stride;
      const int first = tile.row - kBefore;
      gradient = DepthwiseOctetRowCursor<const T, L::kColumns, 1>(
          n, tile, own, {out, 0, 0, 1, kBefore, kBefore}, first, first, tile.end, dy);
      image = DepthwiseOctetRowCursor<const T, L::kColumnGroups * 8, kStride>(
          n, tile, own, of_x, first * kStride + kKernel - kStride, tile.row * kStride,
          tile.end * kStride, x);
    }
    if (to_come > 0) {
      --to_come;
      const uint32_t to = shared_address(memory) + own_offset + slot * L::kSlotBytes;
#pragma unroll
      for (int turn = 0; turn < kRowsPerStep; ++turn) {
        gradient.fetch(to + turn * L::kRowBytes);
#pragma unroll
        for (int a = 0; parts.dw && a < kStride; ++a)
          image.fetch(to + turn * L::kRowBytes + L::kColumns * kPositionBytes + a * L::kOwnBytes);
      }
    }
    end_copies();
  };
  wait_for_earlier_kernels();
  if (n.full) let_next_kernel_start();
#pragma unroll 1
  for (int step = 0; step < kSlots - 1; ++step) fetch(step);

  const DepthwiseLane lane(n);
  uint32_t taps[kKernel][kKernel] = {};
  if (dx) lane.load_taps(w, taps);
  const int matrix = lane.lane / 8, of_sheet = n.column_groups * 8 + kBefore;
  // Matrices whose rows are positions of dy, at q 0 and 1; whose rows are channels, likewise; and
  // the unpaired last q.
  uint32_t pairs_at[kTiles], channels_at[kTiles];
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    pairs_at[i] = lane.address(memory, lane.column(n, 2 * i + matrix % 2, of_sheet)) +
                  (kBefore - matrix / 2) * kPositionBytes;
    channels_at[i] = lane.address(memory, lane.column(n, 2 * i + matrix / 2, of_sheet));
  }
  const uint32_t last_at =
      lane.address(memory, lane.column(n, matrix % L::kColumnGroups, of_sheet));
  const uint32_t x_at = lane.address(memory, L::kColumns + matrix % L::kOwn * 8);

  float weights[kKernel][kStride][L::kPairs][4] = {}, biases[4] = {};
  int slot = 0;
  for (int strip_set = begin; strip_set < strip_sets; strip_set += stride) {
    const DepthwiseTile tile(n, own, strip_set);
    DepthwiseOctetRowCursor<T, L::kColumnGroups * 8, kStride> to(
        n, tile, own, of_x, tile.row * kStride, tile.row * kStride, tile.end * kStride, dx);
    const auto store = [&](int step) {
#pragma unroll
      for (int a = 0; a < kRowsPerStep * kStride; ++a)
        to.store(memory + L::kRingBytes + (step & 1) * kRowsPerStep * L::kOutBytes +
                 a * L::kOwnBytes + own_offset);
    };
    // Rows of dy that the warp's own strip adds to the bias gradient.
    int tile_of_warp, piece;
    n.by_pieces.split(n.by_tiles.split(strip_set * n.strips_per_block + lane.strip, tile_of_warp),
                      piece);
    const int first_own = kBefore - L::kMiddle;
    const int end_own = first_own + min(n.rows, n.down.end - n.down.first - piece * n.rows);
    uint32_t window[kKernel][L::kLoads][4] = {};
    float later[kKernel - kStride][kStride][kTiles][4] = {};
    for (int step = 0; step < steps; ++step) {
      wait_for_copies<kSlots - 2>();
      __syncthreads();  // this step's rows have arrived, all threads have read the last step's
      fetch(slot == 0 ? kSlots - 1 : slot - 1);
      if (dx && step > kBefore / kRowsPerStep) store(step - 1);
#pragma unroll
      for (int turn = 0; turn < kRowsPerStep; ++turn) {
        const uint32_t row = slot * L::kSlotBytes + turn * L::kRowBytes;
        const int at = step * kRowsPerStep + turn;
        if (parts.dw) {
          load_window<kKernel, kStride>(x_at + row, window);
          add_to_weights<T, kKernel, kStride>(channels_at, row, matrix, window,
                                              parts.db && at >= first_own && at < end_own, weights,
                                              biases);
        }
        if (dx) {
          add_to_data<T, kKernel, kStride>(
              lane, pairs_at, last_at, row, taps, step >= kBefore / kRowsPerStep, later,
              memory + L::kRingBytes + ((step & 1) * kRowsPerStep + turn) * L::kOutBytes);
        }
      }
      slot = slot + 1 == kSlots ? 0 : slot + 1;
    }
    __syncthreads();
    if (dx) store(steps - 1);
  }
  if (!parts.dw) return;

  __syncthreads();
  float* const shared = reinterpret_cast<float*>(memory);
  leave_sums<kKernel, kStride>(lane, n.octets, shared + lane.strip * parts.size(), weights, biases);
  __syncthreads();
  parts.add(shared, n.strips_per_block);
#endif
}

template <typename T, int kKernel, int kStride>
void start(const Gpu& gpu, const DepthwiseTensorTiling& n, const DepthwiseGradients& g) {
  constexpr int kBytes = Layout<kKernel, kStride>::kBytes;
  const auto kernel = depthwise_tensor_gradients<T, kKernel, kStride>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
             "reserving shared memory");
  launch_programmatic(gpu, kernel, {n.blocks, n.threads(), kBytes}, n, g.in, g.out, g.top, g.left,
                      static_cast<const T*>(g.x), static_cast<const T*>(g.dy),
                      static_cast<const T*>(g.w), static_cast<T*>(g.dx),
                      part_sums(gpu, g, kKernel * kKernel, n.channels, n.octets * 8));
}

}  // namespace

DepthwiseTensorTiling depthwise_gradients_tensor_tiling(const ConvCase& c) {
  const int kernel = static_cast<int>(c.w[2]), stride = static_cast<int>(c.stride[0]);
  return {static_cast<int>(c.x[0]),
          static_cast<int>(c.x[1]),
          static_cast<int>(c.dilation[0]),
          depthwise_gradient_steps(c, 0),
          depthwise_gradient_steps(c, 1),
          {2 * tiles(kernel, stride), warps(kernel), kResident, (kernel - 1) / stride}};
}

int64_t depthwise_parts(const DepthwiseTensorTiling& n, int taps) {
  return depthwise_part_floats(n.blocks.y, taps, n.channels);
}

void start_depthwise_gradients(const Gpu& gpu, const DepthwiseTensorTiling& n,
                               const DepthwiseKind& kind, const DepthwiseGradients& g) {
  with_depthwise_kind<false>(
      kind, [&]<typename T, int kKernel, int kStride>() { start<T, kKernel, kStride>(gpu, n, g); });
}

}  // namespace crema

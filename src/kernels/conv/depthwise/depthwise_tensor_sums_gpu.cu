// Depthwise convolution in 16 bits on a GPU: y, and with stride 1 dx, which is the same with
// mirrored weights; tiling: depthwise_tensor.cuh. A step down is `stride` rows of x: each is added
// to the sums of all rows of y that it contributes to, the oldest of which is then finished. Two
// adjacent taps are one product. Bound by reading x and writing y once.
#include "device/programmatic_launch.h"
#include "kernels/conv/depthwise/depthwise_tensor.cuh"

namespace crema {
namespace {

constexpr int kTiles = 2, kColumnGroups = 2 * kTiles;  // of sixteen and of eight columns
CREMA_HD constexpr int slots(int stride) { return stride == 1 ? 4 : 3; }
// Rows of y per step: with stride 1 a single row is too little work.
CREMA_HD constexpr int turns(int stride) { return stride == 1 ? 2 : 1; }
// As many as registers and shared memory allow.
CREMA_HD constexpr int warps(int kernel) { return kernel == 3 ? 8 : 6; }
CREMA_HD constexpr int resident(int kernel, int stride) {
  return kernel == 5 && stride == 2 ? 2 : 3;
}

template <int kKernel, int kStride>
struct Layout {
  static constexpr int kLater = (kKernel - 1) / kStride;  // rows of y begun ahead
  static constexpr int kColumns = kColumnGroups * (8 + kLater);
  static constexpr int kRowBytes = kStride * kColumns * kPositionBytes;
  static constexpr int kRowsPerStep = turns(kStride), kSlots = slots(kStride);
  static_assert(kLater % kRowsPerStep == 0);
  static constexpr int kSlotBytes = kRowsPerStep * kStride * kRowBytes;
  static constexpr int kRingBytes = kSlots * kSlotBytes;
  static constexpr int kOutBytes = kColumnGroups * 8 * kPositionBytes;
  static constexpr int kBytes = kRingBytes + 2 * kRowsPerStep * kOutBytes;
  // Distance from a column to that of the next tap of its positions, and to that two taps on.
  static constexpr int kTapBytes = kStride == 1 ? kPositionBytes : kColumns * kPositionBytes;
  static constexpr int kPairBytes = 2 / kStride * kPositionBytes;
};

// The taps in reverse order.
template <int kKernel>
__device__ __forceinline__ void mirror(uint32_t (&taps)[kKernel][kKernel]) {
  constexpr int kTaps = kKernel * kKernel;
#pragma unroll
  for (int i = 0; i < kTaps / 2; ++i) {
    const int j = kTaps - 1 - i;
    const uint32_t tap = taps[i / kKernel][i % kKernel];
    taps[i / kKernel][i % kKernel] = taps[j / kKernel][j % kKernel];
    taps[j / kKernel][j % kKernel] = tap;
  }
}

// Adds the products of row e of a step to the sums of the rows of y that it contributes to.
template <typename T, int kKernel, int kStride>
__device__ __forceinline__ void add_row(
    const uint32_t (&pairs_at)[kTiles], uint32_t last_at, uint32_t row, int e,
    const uint32_t (&taps)[kKernel][kKernel],
    float (&sums)[Layout<kKernel, kStride>::kLater + 1][kTiles][4]) {
  using L = Layout<kKernel, kStride>;
  uint32_t lasts[4];
  load_matrices(lasts, last_at + row);
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    uint32_t pairs[kKernel / 2][4];
#pragma unroll
    for (int j = 0; j < kKernel / 2; ++j)
      load_matrices(pairs[j], pairs_at[i] + row + j * L::kPairBytes);
#pragma unroll
    for (int p = L::kLater; p >= 0; --p) {
      const int r = kStride * p + e;
      if (r >= kKernel) continue;
#pragma unroll
      for (int j = 0; j < kKernel / 2; ++j)
        multiply_add<T>(sums[p][i], pairs[j], taps[r][2 * j], taps[r][2 * j + 1]);
      multiply_add<T>(sums[p][i], lasts[2 * i], lasts[2 * i + 1], taps[r][kKernel - 1]);
    }
  }
}

template <typename T, int kKernel, int kStride>
__global__ void __launch_bounds__(32 * warps(kKernel), resident(kKernel, kStride))
    depthwise_tensor_sums(DepthwiseTensorTiling n, DepthwiseImage in, DepthwiseImage out, int top,
                          int left, const T* x, const T* w, const T* bias, DepthwiseEnd end,
                          bool mirrored, T* y) {
#if __CUDA_ARCH__ >= 800  // older cards lack these instructions: see supports()
  using L = Layout<kKernel, kStride>;
  constexpr int kRowsPerStep = L::kRowsPerStep, kSlots = L::kSlots;
  extern __shared__ __align__(128) unsigned char memory[];
  // Copies continue from strip to strip.
  DepthwiseOctetRowCursor<const T, L::kColumns, kStride> from;
  const DepthwiseOctet own(n);
  const int own_offset = own.offset();
  const int strip_sets = (n.strip_count + n.strips_per_block - 1) / n.strips_per_block,
            begin = static_cast<int>(blockIdx.y);
  const int stride = static_cast<int>(gridDim.y),
            steps = (n.rows + L::kLater + kRowsPerStep - 1) / kRowsPerStep;
  int to_come = 0, next = begin;
  const auto fetch = [&](int slot) {
    if (to_come == 0 && next < strip_sets) {
      to_come = steps;
      const DepthwiseTile tile(n, own, next);
      next += stride;
      from = DepthwiseOctetRowCursor<const T, L::kColumns, kStride>(
          n, tile, own, {in, top, left, kStride, 0, L::kLater}, tile.row * kStride,
          tile.row * kStride, (tile.end - 1) * kStride + kKernel, x);
    }
    if (to_come > 0) {
      --to_come;
#pragma unroll
      for (int e = 0; e < kRowsPerStep * kStride; ++e)
        from.fetch(shared_address(memory) + own_offset + slot * L::kSlotBytes + e * L::kRowBytes);
    }
    end_copies();
  };
  wait_for_earlier_kernels();
  if (n.full) let_next_kernel_start();
#pragma unroll 1
  for (int step = 0; step < kSlots - 1; ++step) fetch(step);

  const DepthwiseLane lane(n);
  uint32_t taps[kKernel][kKernel];
  lane.load_taps(w, taps);
  if (mirrored) mirror(taps);
  float2 first{0, 0};
  if (bias && lane.channel < n.channels) {
    ChannelPair<T> pair;
    pair.bits = *reinterpret_cast<const uint32_t*>(bias + lane.channel + lane.lane % 4 * 2);
    first = pair.floats();
  }
  const int matrix = lane.lane / 8, of_sheet = n.column_groups * 8 + L::kLater;
  uint32_t pairs_at[kTiles];
#pragma unroll
  for (int i = 0; i < kTiles; ++i)
    pairs_at[i] = lane.address(memory, lane.column(n, 2 * i + matrix % 2, of_sheet)) +
                  matrix / 2 * L::kTapBytes;
  const uint32_t last_at = lane.address(memory, lane.column(n, matrix, of_sheet)) +
                           (kKernel - 1) / kStride * kPositionBytes;

  unsigned char* const results = memory + L::kRingBytes;
  int slot = 0;
  for (int strip_set = begin; strip_set < strip_sets; strip_set += stride) {
    const DepthwiseTile tile(n, own, strip_set);
    DepthwiseOctetRowCursor<T, kColumnGroups * 8, 1> to(n, tile, own, {out, 0, 0, 1, 0, 0},
                                                        tile.row, tile.row, tile.end, y);
    const auto store = [&](int step) {
#pragma unroll
      for (int turn = 0; turn < kRowsPerStep; ++turn)
        to.store(results + ((step & 1) * kRowsPerStep + turn) * L::kOutBytes + own_offset);
    };
    float later[L::kLater][kTiles][4];
#pragma unroll
    for (int i = 0; i < L::kLater * kTiles * 4; ++i)
      later[i / (kTiles * 4)][i / 4 % kTiles][i % 4] = i % 2 ? first.y : first.x;
    for (int step = 0; step < steps; ++step) {
      wait_for_copies<kSlots - 2>();
      __syncthreads();  // this step's rows have arrived, all threads have read the last step's
      fetch(slot == 0 ? kSlots - 1 : slot - 1);
      if (step > L::kLater / kRowsPerStep) store(step - 1);
#pragma unroll
      for (int turn = 0; turn < kRowsPerStep; ++turn) {
        float sums[L::kLater + 1][kTiles][4];
#pragma unroll
        for (int p = 0; p <= L::kLater; ++p) {
#pragma unroll
          for (int i = 0; i < kTiles * 4; ++i)
            sums[p][i / 4][i % 4] = p > 0   ? later[p > 0 ? p - 1 : 0][i / 4][i % 4]
                                    : i % 2 ? first.y
                                            : first.x;
        }
#pragma unroll
        for (int e = 0; e < kStride; ++e) {
          const uint32_t row = slot * L::kSlotBytes + (turn * kStride + e) * L::kRowBytes;
          add_row<T, kKernel, kStride>(pairs_at, last_at, row, e, taps, sums);
        }
        if (step >= L::kLater / kRowsPerStep) {
          unsigned char* const row = results + ((step & 1) * kRowsPerStep + turn) * L::kOutBytes;
#pragma unroll
          for (int i = 0; i < kTiles; ++i) {
            float(&finished)[4] = sums[L::kLater][i];
            if (end.relu) {
#pragma unroll
              for (float& sum : finished) sum = sum < 0 ? end.slope * sum : sum;
            }
            lane.template write<T>(row, i * 16, finished);
          }
        }
#pragma unroll
        for (int i = 0; i < L::kLater * kTiles * 4; ++i)
          later[i / (kTiles * 4)][i / 4 % kTiles][i % 4] =
              sums[i / (kTiles * 4)][i / 4 % kTiles][i % 4];
      }
      slot = slot + 1 == kSlots ? 0 : slot + 1;
    }
    __syncthreads();
    store(steps - 1);
  }
#endif
}

template <typename T, int kKernel, int kStride>
void start(const Gpu& gpu, const DepthwiseTensorTiling& n, const DepthwiseSums& s) {
  constexpr int kBytes = Layout<kKernel, kStride>::kBytes;
  const auto kernel = depthwise_tensor_sums<T, kKernel, kStride>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
             "reserving shared memory");
  launch_programmatic(gpu, kernel, {n.blocks, n.threads(), kBytes}, n, s.in, s.out, s.top, s.left,
                      static_cast<const T*>(s.x), static_cast<const T*>(s.w),
                      static_cast<const T*>(s.bias), s.end, s.mirrored, static_cast<T*>(s.y));
}

}  // namespace

DepthwiseTensorTiling depthwise_sums_tensor_tiling(const ConvCase& c, bool of_dx) {
  const Shape& out = of_dx ? c.x : c.y;
  const int kernel = static_cast<int>(c.w[2]), stride = of_dx ? 1 : static_cast<int>(c.stride[0]);
  const int dilation = static_cast<int>(c.dilation[0]);
  return {static_cast<int>(out[0]),
          static_cast<int>(out[1]),
          dilation,
          DepthwiseRange::of_sums(out[2], dilation),
          DepthwiseRange::of_sums(out[3], dilation),
          {kColumnGroups, warps(kernel), resident(kernel, stride), (kernel - 1) / stride}};
}

void start_depthwise_sums(const Gpu& gpu, const DepthwiseTensorTiling& n, const DepthwiseKind& kind,
                          const DepthwiseSums& sums) {
  with_depthwise_kind<false>(kind, [&]<typename T, int kKernel, int kStride>() {
    start<T, kKernel, kStride>(gpu, n, sums);
  });
}

}  // namespace crema

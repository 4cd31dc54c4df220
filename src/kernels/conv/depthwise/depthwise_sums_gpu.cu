// Depthwise convolution on a GPU: y, and with stride 1 dx, which is the same with mirrored weights;
// tiling: depthwise.cuh. Each arriving row is added to the sums of all rows of y that it
// contributes to, so a thread keeps these instead of rows of x. Bound by reading x and writing y
// once; 9 multiply-adds per position are a third of what a card can do in that time, 25 all of it.
#include "device/programmatic_launch.h"
#include "kernels/conv/depthwise/depthwise.cuh"

namespace crema {
namespace {

// Columns of a strip, and blocks per multiprocessor: as many as the registers allow.
CREMA_HD constexpr int width_of(int stride) { return stride == 1 ? 7 : 4; }
template <typename T>
constexpr int kSlots = sizeof(T) == 4 ? 3 : 4;
CREMA_HD constexpr int resident(int kernel) { return kernel == 3 ? 4 : 3; }

template <typename T, int kKernel, int kStride, int kGang>
__global__ void __launch_bounds__(kDepthwiseThreads, resident(kKernel))
    depthwise_sums(DepthwiseTiling n, DepthwiseImage in, DepthwiseImage out, int top, int left,
                   const T* x, const T* w, const T* bias, DepthwiseEnd end, bool mirrored, T* y) {
#if __CUDA_ARCH__ >= 800  // older cards lack these instructions: see supports()
  constexpr int kWidth = width_of(kStride), kIn = (kWidth - 1) * kStride + kKernel;
  constexpr int kLater = (kKernel - 1) / kStride;  // rows of y begun ahead of the current one
  int lane;
  const int strip_in_block = n.by_lanes.split(static_cast<int>(threadIdx.x), lane);
  const int channel = (static_cast<int>(blockIdx.x) * n.lanes + lane) * 2;
  const int number = static_cast<int>(blockIdx.y) * n.strips_per_block + strip_in_block;
  const bool busy = channel < n.channels && number < n.strip_count;
  const DepthwiseStrip strip(n, busy ? number : 0, kWidth);
  const int row = strip.row * n.dilation + strip.down;
  const int column = strip.column * n.dilation + strip.across;
  DepthwiseRowCursor<const T, kIn, kGang> from(
      DepthwiseRowStart<kIn>(n, in, strip.image, row * kStride - top, column * kStride - left,
                             channel),
      x);
  DepthwiseRowCursor<T, kWidth> to(
      DepthwiseRowStart<kWidth>(n, out, strip.image, row, column, channel), y);
  float2 taps[kKernel][kKernel], first{0, 0};
  const auto add = [&](const float2(&positions)[kIn], int r, float2(&sums)[kWidth]) {
#pragma unroll
    for (int s = 0; s < kKernel; ++s) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) add_product(sums[i], positions[i * kStride + s], taps[r][s]);
    }
  };
  using Ring = DepthwiseRing<T, depthwise_slots(kIn, kGang), kSlots<T>, kGang>;
  __shared__ __align__(16) unsigned char memory[Ring::kBytes];
  Ring ring(memory);
  // All strips take as many steps: the last rows of the last one may be past the image.
  int wanted = busy ? kKernel - kStride + kStride * n.rows : 0;
  const auto fetch = [&] {
    if (wanted-- > 0) from.fetch(ring.slot());
    ring.fill();
  };
  wait_for_earlier_kernels();
  if (n.full) let_next_kernel_start();
  for (int slot = 0; slot < kSlots<T> - 1; ++slot) fetch();
  load_taps<T, kKernel>(n, w, lane, mirrored, taps);  // while the first rows are in flight
  if (!busy) return;
  if (bias) first = reinterpret_cast<const ChannelPair<T>*>(bias + channel)->floats();
  const auto take = [&](float2(&positions)[kIn]) {
    ring.wait();
#pragma unroll
    for (int i = 0; i < kIn; ++i) positions[i] = ring[i];
    ring.take();
    fetch();
  };
  float2 later[kLater][kWidth];
#pragma unroll
  for (int i = 0; i < kLater * kWidth; ++i) later[i / kWidth][i % kWidth] = first;
#pragma unroll
  for (int e = 0; e < kKernel - kStride; ++e) {
    float2 positions[kIn];
    take(positions);
#pragma unroll
    for (int p = 0; p < kLater; ++p) {
      const int r = e - p * kStride;
      if (r >= 0) add(positions, r, later[p]);
    }
  }
  for (int step = 0; step < n.rows; ++step) {
    float2 positions[kStride][kIn], sums[kLater + 1][kWidth];
#pragma unroll
    for (int e = 0; e < kStride; ++e) take(positions[e]);
#pragma unroll
    for (int p = 0; p <= kLater; ++p) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sums[p][i] = p < kLater ? later[p][i] : first;
#pragma unroll
      for (int e = 0; e < kStride; ++e) {
        const int r = kKernel - kStride + e - p * kStride;
        if (r >= 0) add(positions[e], r, sums[p]);
      }
    }
    if (end.relu) {
#pragma unroll
      for (float2& sum : sums[0]) {
        sum.x = sum.x < 0 ? end.slope * sum.x : sum.x;
        sum.y = sum.y < 0 ? end.slope * sum.y : sum.y;
      }
    }
    to.store(sums[0]);
#pragma unroll
    for (int i = 0; i < kLater * kWidth; ++i)
      later[i / kWidth][i % kWidth] = sums[i / kWidth + 1][i % kWidth];
  }
#endif
}

template <typename T, int kKernel, int kStride, int kGang>
void start(const Gpu& gpu, const DepthwiseTiling& n, const DepthwiseSums& s) {
  launch_programmatic(gpu, depthwise_sums<T, kKernel, kStride, kGang>, {n.blocks, n.threads()}, n,
                      s.in, s.out, s.top, s.left, static_cast<const T*>(s.x),
                      static_cast<const T*>(s.w), static_cast<const T*>(s.bias), s.end, s.mirrored,
                      static_cast<T*>(s.y));
}

}  // namespace

DepthwiseTiling depthwise_sums_tiling(const ConvCase& c, bool of_dx) {
  const Shape& out = of_dx ? c.x : c.y;
  const int kernel = static_cast<int>(c.w[2]), stride = of_dx ? 1 : static_cast<int>(c.stride[0]);
  const int dilation = static_cast<int>(c.dilation[0]);
  return {static_cast<int>(out[0]),
          static_cast<int>(out[1]),
          dilation,
          DepthwiseRange::of_sums(out[2], dilation),
          DepthwiseRange::of_sums(out[3], dilation),
          width_of(stride),
          (kernel - 1) / stride,
          resident(kernel),
          true};
}

void start_depthwise_sums(const Gpu& gpu, const DepthwiseTiling& n, const DepthwiseKind& kind,
                          const DepthwiseSums& sums) {
  with_depthwise_kind<true>(kind, [&]<typename T, int kKernel, int kStride>() {
    // In a strip of few rows wider copies do not make up for their later start.
    with_depthwise_gang<T>(n.channels, n.rows > 8,
                           [&]<int kGang>() { start<T, kKernel, kStride, kGang>(gpu, n, sums); });
  });
}

}  // namespace crema

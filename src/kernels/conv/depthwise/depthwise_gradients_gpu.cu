// Both gradients of a depthwise convolution in one pass over x and dy; tiling: depthwise.cuh. A
// step along an axis is `stride` positions of the padded x and one of dy: positions stride * i + a
// meet dy at i - m through the taps a + stride * m, for dx and for dw, so both read the rows of dy
// around a step. Sums of dw stay in registers throughout, until blocks reduce theirs
// (depthwise_parts.cuh).
#include <algorithm>

#include "device/programmatic_launch.h"
#include "kernels/conv/depthwise/depthwise.cuh"
#include "kernels/conv/depthwise/depthwise_parts.cuh"

namespace crema {
namespace {

// Columns of a strip, and blocks per multiprocessor: as many as the registers allow.
CREMA_HD constexpr int width_of(int kernel, int stride) {
  return stride == 2 ? 4 : kernel == 3 ? 7 : 3;
}
template <typename T>
constexpr int kSlots = sizeof(T) == 4 ? 2 : 4;
CREMA_HD constexpr int resident(int kernel, int stride) {
  return kernel == 5 && stride == 2 ? 2 : 3;
}

// A step's row of dy, followed by those of x.
CREMA_HD constexpr int slots_of_dy(int kernel, int stride, int gang) {
  return depthwise_slots(width_of(kernel, stride) + (kernel - 1) / stride, gang);
}
CREMA_HD constexpr int slots_of_x(int kernel, int stride, int gang) {
  return depthwise_slots(width_of(kernel, stride) * stride, gang);
}
template <typename T, int kKernel, int kStride, int kGang>
using GradientsRing = DepthwiseRing<
    T, slots_of_dy(kKernel, kStride, kGang) + kStride * slots_of_x(kKernel, kStride, kGang),
    kSlots<T>, kGang>;

// Adds the products of a turn's rows of dy in the window and rows of x to the sums for dw.
template <int kStride, int kKernel, int kRows, int kIn, int kOwn>
__device__ __forceinline__ void add_weights(int turn, const float2 (&window)[kRows][kIn],
                                            const float2 (&values)[kStride][kOwn],
                                            float2 (&sums)[kKernel][kKernel]) {
  constexpr int kBefore = kRows - 1;
#pragma unroll
  for (int r = 0; r < kKernel; ++r) {
#pragma unroll
    for (int s = 0; s < kKernel; ++s) {
#pragma unroll
      for (int j = 0; j < kOwn / kStride; ++j)
        add_product(sums[r][s],
                    window[(turn + kBefore - r / kStride) % kRows][j + kBefore - s / kStride],
                    values[r % kStride][j * kStride + s % kStride]);
    }
  }
}

// Row a of a turn's rows of dx.
template <int kStride, int kKernel, int kRows, int kIn, int kOwn>
__device__ __forceinline__ void add_data(int turn, int a, const float2 (&window)[kRows][kIn],
                                         const float2 (&taps)[kKernel][kKernel],
                                         float2 (&results)[kOwn]) {
  constexpr int kBefore = kRows - 1;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
#pragma unroll
    for (int r = a; r < kKernel; r += kStride) {
#pragma unroll
      for (int s = i % kStride; s < kKernel; s += kStride)
        add_product(
            results[i],
            window[(turn + kBefore - r / kStride) % kRows][i / kStride + kBefore - s / kStride],
            taps[r][s]);
    }
  }
}

template <typename T, int kKernel, int kStride, int kGang>
__global__ void __launch_bounds__(kDepthwiseThreads, resident(kKernel, kStride))
    depthwise_gradients(DepthwiseTiling n, DepthwiseImage in, DepthwiseImage out, int top, int left,
                        const T* x, const T* dy, const T* w, T* dx, PartSums parts) {
#if __CUDA_ARCH__ >= 800  // older cards lack these instructions: see supports()
  constexpr int kWidth = width_of(kKernel, kStride), kTaps = kKernel * kKernel;
  constexpr int kBefore = (kKernel - 1) / kStride, kRows = kBefore + 1, kIn = kWidth + kBefore;
  constexpr int kOwn = kWidth * kStride;  // columns of x
  constexpr int kX = slots_of_dy(kKernel, kStride, kGang);
  constexpr int kXRow = slots_of_x(kKernel, kStride, kGang);
  // Each step i owns position i - kMiddle of dy, whatever the pad.
  constexpr int kMiddle = (kKernel - 1) / 2 / kStride;
  constexpr bool kFuses = fuses_depthwise_gradients(kKernel, kStride);
  int lane;
  const int strip_in_block = n.by_lanes.split(static_cast<int>(threadIdx.x), lane);
  const int channel = (static_cast<int>(blockIdx.x) * n.lanes + lane) * 2;
  float2 taps[kKernel][kKernel], sums[kKernel][kKernel] = {}, bias_sum{0, 0};
  using Ring = GradientsRing<T, kKernel, kStride, kGang>;
  extern __shared__ __align__(128) unsigned char memory[];
  const int begin = static_cast<int>(blockIdx.y) * n.strips_per_block;
  for (int first_strip = begin; first_strip < n.strip_count;
       first_strip += static_cast<int>(gridDim.y) * n.strips_per_block) {
    const bool busy = channel < n.channels && first_strip + strip_in_block < n.strip_count;
    const DepthwiseStrip strip(n, busy ? first_strip + strip_in_block : 0, kWidth);
    const int row = strip.row * n.dilation + strip.down;
    const int column = strip.column * n.dilation + strip.across;
    DepthwiseRowStart<kIn> of_dy(n, out, strip.image, row - kBefore * n.dilation,
                                 column - kBefore * n.dilation, channel);
    DepthwiseRowStart<kOwn> own(n, in, strip.image, row * kStride - top, column * kStride - left,
                                channel);
    if (!busy) of_dy.inside = own.inside = 0;
    DepthwiseRowCursor<const T, kIn, kGang> gradient(of_dy, dy);
    DepthwiseRowCursor<const T, kOwn, kGang> image(own, x);
    DepthwiseRowCursor<T, kOwn> to(own, dx);
    float2 window[kRows][kIn];
    Ring ring(memory);
    int number = 0;  // of the next row of dy to load
    const auto fetch = [&] {
      if (number < n.rows + kBefore) {
        gradient.fetch(ring.slot());
#pragma unroll
        for (int a = 0; parts.dw && a < kStride; ++a) {
          if (number >= kBefore) image.fetch(ring.slot() + (kX + a * kXRow) * Ring::kStep);
        }
      }
      ++number;
      ring.fill();
    };
    const auto take = [&](float2(&positions)[kIn]) {
      ring.wait();
#pragma unroll
      for (int i = 0; i < kIn; ++i) positions[i] = ring[i];
    };
    if (first_strip == begin) {
      wait_for_earlier_kernels();
      if (n.full) let_next_kernel_start();
    }
    for (int slot = 0; slot < kSlots<T> - 1; ++slot) fetch();
    if constexpr (kFuses) {
      if (dx && first_strip == begin) load_taps<T, kKernel>(n, w, lane, false, taps);
    }
#pragma unroll
    for (int r = 0; r < kBefore; ++r) {
      take(window[r]);
      ring.take();
      fetch();
    }
    // All strips take as many steps: the last rows of the last may be past the image.
    for (int first = 0; first < n.rows; first += kRows) {
#pragma unroll
      for (int turn = 0; turn < kRows; ++turn) {
        if (first + turn < n.rows) {
          float2 values[kStride][kOwn];
          take(window[(turn + kBefore) % kRows]);
#pragma unroll
          for (int i = 0; i < kStride * kOwn; ++i)
            values[i / kOwn][i % kOwn] = ring[kX + i / kOwn * kXRow + i % kOwn];
          ring.take();
          fetch();
          if (parts.db) {
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
              const float2 position =
                  window[(turn + kBefore - kMiddle) % kRows][j + kBefore - kMiddle];
              bias_sum.x += position.x, bias_sum.y += position.y;
            }
          }
          if (parts.dw) add_weights<kStride>(turn, window, values, sums);
          if constexpr (kFuses) {
            if (!dx) continue;
#pragma unroll
            for (int a = 0; a < kStride; ++a) {
              float2 results[kOwn] = {};
              add_data<kStride>(turn, a, window, taps, results);
              to.store(results);
            }
          }
        }
      }
    }
  }
  if (!parts.dw) return;

  __syncthreads();  // all rows have been read
  auto* const shared = reinterpret_cast<float*>(memory);
  float* const set = shared + strip_in_block * parts.size();
  const auto sum_of = [&](int i) {
    const float2& both = sums[i % kTaps / kKernel][i % kTaps % kKernel];
    return i < kTaps ? both.x : both.y;
  };
#pragma unroll
  for (int i = 0; i < 2 * kTaps; i += 2)
    reinterpret_cast<float2*>(set)[lane * kTaps + i / 2] = {sum_of(i), sum_of(i + 1)};
  reinterpret_cast<float2*>(set)[n.lanes * kTaps + lane] = bias_sum;
  __syncthreads();
  parts.add(shared, n.strips_per_block);
#endif
}

template <typename T, int kKernel, int kStride, int kGang>
void start(const Gpu& gpu, const DepthwiseTiling& n, const DepthwiseGradients& g) {
  constexpr int kSums = (kKernel * kKernel + 1) * kDepthwiseThreads * sizeof(float2);
  constexpr int kBytes = std::max(GradientsRing<T, kKernel, kStride, kGang>::kBytes, kSums);
  const auto kernel = depthwise_gradients<T, kKernel, kStride, kGang>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
             "reserving shared memory");
  launch_programmatic(gpu, kernel, {n.blocks, n.threads(), kBytes}, n, g.in, g.out, g.top, g.left,
                      static_cast<const T*>(g.x), static_cast<const T*>(g.dy),
                      static_cast<const T*>(g.w), static_cast<T*>(g.dx),
                      part_sums(gpu, g, kKernel * kKernel, n.channels, 2 * n.lanes));
}

}  // namespace

DepthwiseRange depthwise_gradient_steps(const ConvCase& c, size_t axis) {
  const int stride = static_cast<int>(c.stride[0]), dilation = static_cast<int>(c.dilation[0]);
  const int middle = (static_cast<int>(c.w[2]) - 1) / 2 / stride;
  const auto of_x = [&](int64_t position) {
    return static_cast<int>((position + c.pad[axis]) / (stride * dilation));
  };
  DepthwiseRange range{of_x(0), of_x(c.x[axis + 2] - 1) + 1};
  if (c.bias) {
    range.first = std::min(range.first, middle);
    range.end = std::max(range.end, static_cast<int>((c.y[axis + 2] - 1) / dilation) + middle + 1);
  }
  return range;
}

DepthwiseTiling depthwise_gradients_tiling(const ConvCase& c) {
  const int kernel = static_cast<int>(c.w[2]), stride = static_cast<int>(c.stride[0]);
  return {static_cast<int>(c.x[0]),
          static_cast<int>(c.x[1]),
          static_cast<int>(c.dilation[0]),
          depthwise_gradient_steps(c, 0),
          depthwise_gradient_steps(c, 1),
          width_of(kernel, stride),
          (kernel - 1) / stride,
          resident(kernel, stride),
          false};
}

int64_t depthwise_parts(const DepthwiseTiling& n, int taps) {
  return depthwise_part_floats(n.blocks.y, taps, n.channels);
}

void start_depthwise_gradients(const Gpu& gpu, const DepthwiseTiling& n, const DepthwiseKind& kind,
                               const DepthwiseGradients& g) {
  with_depthwise_kind<true>(kind, [&]<typename T, int kKernel, int kStride>() {
    with_depthwise_gang<T>(n.channels, true,
                           [&]<int kGang>() { start<T, kKernel, kStride, kGang>(gpu, n, g); });
  });
}

}  // namespace crema

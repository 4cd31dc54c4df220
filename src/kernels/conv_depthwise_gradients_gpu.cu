// Both gradients of a depthwise convolution from one pass over x and dy. See conv_depthwise.cuh. A
// step along an axis is `stride` places of the padded x and one of dy: places stride * i + a meet
// dy at i - m through the taps a + stride * m, for dx as for dw, so both read the rows of dy around
// a step. Sums of dw stay in registers all along; blocks leave theirs in `parts`, and a second
// kernel adds these. The order of the additions depends on sizes only.
#include "device/launch.h"
#include "kernels/conv_depthwise.cuh"

namespace crema {
namespace {

// Columns of a strip, and blocks on a multiprocessor: as many as the registers hold.
CREMA_HD constexpr int width_of(int kernel, int stride) {
  return stride == 1 && kernel == 3 ? 7 : 4;
}
CREMA_HD constexpr int resident(int kernel, int stride) {
  return kernel == 5 && stride == 2 ? 2 : 3;
}

template <typename T, int kKernel, int kStride>
__global__ void __launch_bounds__(kDepthwiseThreads, resident(kKernel, kStride))
    depthwise_gradients(DepthwiseWalk n, DepthwiseImage in, DepthwiseImage out, int top, int left,
                        const T* x, const T* dy, const T* w, T* dx, float* parts, bool bias) {
  constexpr int kWidth = width_of(kKernel, kStride), kTaps = kKernel * kKernel;
  constexpr int kBefore = (kKernel - 1) / kStride, kRows = kBefore + 1, kIn = kWidth + kBefore;
  constexpr int kOwn = kWidth * kStride;  // columns of x
  // A place of dy that each step has for its own, whatever the pad.
  constexpr int kMiddle = (kKernel - 1) / 2 / kStride;
  constexpr bool kJoins = joins_depthwise_gradients(kKernel, kStride);
  int lane;
  const int walker = n.by_lanes.split(static_cast<int>(threadIdx.x), lane);
  const int channel = (static_cast<int>(blockIdx.x) * n.lanes + lane) * 2;
  float2 taps[kKernel][kKernel], sums[kKernel][kKernel] = {}, bias_sum{0, 0};
  if constexpr (kJoins) {
    if (dx) load_taps<T, kKernel>(n, w, lane, false, taps);
  }

  for (int number = static_cast<int>(blockIdx.y) * n.walkers + walker;
       channel < n.channels && number < n.strips;
       number += static_cast<int>(gridDim.y) * n.walkers) {
    const DepthwiseStrip strip(n, number, kWidth);
    const int row = strip.row * n.dilation + strip.down;
    const int column = strip.column * n.dilation + strip.across;
    DepthwiseRows<const T, kIn> gradient(
        DepthwisePlaces<kIn>(n, out, strip.image, row - kBefore * n.dilation,
                             column - kBefore * n.dilation, channel),
        dy);
    const DepthwisePlaces<kOwn> own(n, in, strip.image, row * kStride - top,
                                    column * kStride - left, channel);
    DepthwiseRows<const T, kOwn> image(own, x);
    DepthwiseRows<T, kOwn> to(own, dx);
    float2 window[kRows][kIn];
    ChannelPair<T> next_dy[kIn], next_x[kStride][kOwn];
#pragma unroll
    for (int r = 0; r < kBefore; ++r) {
      gradient.load(true, next_dy);
#pragma unroll
      for (int i = 0; i < kIn; ++i) window[r][i] = next_dy[i].floats();
    }
    const auto load = [&](bool wanted) {
      gradient.load(wanted, next_dy);
#pragma unroll
      for (int a = 0; a < kStride; ++a) image.load(wanted && parts, next_x[a]);
    };
    load(true);
    for (int first = 0; first < strip.count; first += kRows) {
#pragma unroll
      for (int turn = 0; turn < kRows; ++turn) {
        if (first + turn < strip.count) {
          float2 values[kStride][kOwn];
#pragma unroll
          for (int i = 0; i < kIn; ++i) window[(turn + kBefore) % kRows][i] = next_dy[i].floats();
#pragma unroll
          for (int i = 0; i < kStride * kOwn; ++i)
            values[i / kOwn][i % kOwn] = next_x[i / kOwn][i % kOwn].floats();
          load(first + turn + 1 < strip.count);
          if (bias) {
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
              const float2 place =
                  window[(turn + kBefore - kMiddle) % kRows][j + kBefore - kMiddle];
              bias_sum.x += place.x, bias_sum.y += place.y;
            }
          }
          if (parts) {
#pragma unroll
            for (int r = 0; r < kKernel; ++r) {
#pragma unroll
              for (int s = 0; s < kKernel; ++s) {
#pragma unroll
                for (int j = 0; j < kWidth; ++j)
                  add_product(
                      sums[r][s],
                      window[(turn + kBefore - r / kStride) % kRows][j + kBefore - s / kStride],
                      values[r % kStride][j * kStride + s % kStride]);
              }
            }
          }
          if constexpr (kJoins) {
            if (!dx) continue;
#pragma unroll
            for (int a = 0; a < kStride; ++a) {
              float2 results[kOwn] = {};
#pragma unroll
              for (int i = 0; i < kOwn; ++i) {
#pragma unroll
                for (int r = a; r < kKernel; r += kStride) {
#pragma unroll
                  for (int s = i % kStride; s < kKernel; s += kStride)
                    add_product(results[i],
                                window[(turn + kBefore - r / kStride) % kRows]
                                      [i / kStride + kBefore - s / kStride],
                                taps[r][s]);
                }
              }
              to.store(results);
            }
          }
        }
      }
    }
  }
  if (!parts) return;

  __shared__ float2 shared[kTaps + 1][kDepthwiseThreads];
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap)
    shared[tap][threadIdx.x] = sums[tap / kKernel][tap % kKernel];
  shared[kTaps][threadIdx.x] = bias_sum;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < (kTaps + 1) * n.lanes;
       i += static_cast<int>(blockDim.x)) {
    int of_lane;
    const int tap = n.by_lanes.split(i, of_lane);
    const int at = (static_cast<int>(blockIdx.x) * n.lanes + of_lane) * 2;
    if (at >= n.channels) continue;
    float2 total{0, 0};
    for (int other = 0; other < n.walkers; ++other) {
      const float2 sum = shared[tap][other * n.lanes + of_lane];
      total.x += sum.x, total.y += sum.y;
    }
    *reinterpret_cast<float2*>(
        parts + (static_cast<int64_t>(blockIdx.y) * (kTaps + 1) + tap) * n.channels + at) = total;
  }
}

// A warp has 32 channels of a tap; the eight warps of a block share the parts.
__global__ void __launch_bounds__(256)
    add_parts(int channels, int taps, int count, const float* parts, float* dw, float* db,
              bool accumulate_w, bool accumulate_b) {
  __shared__ float shared[8][32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int channel = static_cast<int>(blockIdx.x) * 32 + lane;
  const int tap = static_cast<int>(blockIdx.y);
  float sum = 0;
  if (channel < channels) {
#pragma unroll 4
    for (int part = warp; part < count; part += 8)
      sum += parts[(static_cast<int64_t>(part) * (taps + 1) + tap) * channels + channel];
  }
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || channel >= channels) return;
#pragma unroll
  for (int other = 1; other < 8; ++other) sum += shared[other][lane];
  float& to = tap < taps ? dw[static_cast<int64_t>(channel) * taps + tap] : db[channel];
  to = (tap < taps ? accumulate_w : accumulate_b) ? to + sum : sum;
}

template <typename T, int kKernel, int kStride>
void start(const Gpu& gpu, const DepthwiseWalk& n, const DepthwiseGradients& g) {
  launch(gpu, depthwise_gradients<T, kKernel, kStride>, {n.blocks, n.threads()}, n, g.in, g.out,
         g.top, g.left, static_cast<const T*>(g.x), static_cast<const T*>(g.dy),
         static_cast<const T*>(g.w), static_cast<T*>(g.dx), g.dw ? g.parts : nullptr,
         g.db != nullptr);
}

template <typename T>
void start(const Gpu& gpu, const DepthwiseWalk& n, const DepthwiseKind& kind,
           const DepthwiseGradients& g) {
  if (kind.kernel == 3)
    return kind.stride == 1 ? start<T, 3, 1>(gpu, n, g) : start<T, 3, 2>(gpu, n, g);
  return kind.stride == 1 ? start<T, 5, 1>(gpu, n, g) : start<T, 5, 2>(gpu, n, g);
}

}  // namespace

DepthwiseWalk depthwise_gradients_walk(const ConvCase& c) {
  const int kernel = static_cast<int>(c.w[2]), stride = static_cast<int>(c.stride[0]);
  const int dilation = static_cast<int>(c.dilation[0]), middle = (kernel - 1) / 2 / stride;
  // Steps that have places of x, and with a bias those that have one of dy for their own.
  const auto steps = [&](int axis) {
    const auto of_x = [&](int64_t place) {
      return static_cast<int>((place + c.pad[static_cast<size_t>(axis)]) / (stride * dilation));
    };
    DepthwiseRange range{of_x(0), of_x(c.x[axis + 2] - 1) + 1};
    if (c.bias) {
      range.first = std::min(range.first, middle);
      range.end =
          std::max(range.end, static_cast<int>((c.y[axis + 2] - 1) / dilation) + middle + 1);
    }
    return range;
  };
  return {static_cast<int>(c.x[0]), static_cast<int>(c.x[1]), dilation, steps(0), steps(1),
          width_of(kernel, stride), resident(kernel, stride), false};
}

int64_t depthwise_parts(const DepthwiseWalk& n, int taps) {
  return static_cast<int64_t>(n.blocks.y) * (taps + 1) * n.channels;
}

void start_depthwise_gradients(const Gpu& gpu, const DepthwiseWalk& n, const DepthwiseKind& kind,
                               const DepthwiseGradients& g) {
  switch (kind.dtype) {
    case DType::f16:
      start<Half>(gpu, n, kind, g);
      break;
    case DType::bf16:
      start<BFloat16>(gpu, n, kind, g);
      break;
    default:
      start<float>(gpu, n, kind, g);
  }
  if (!g.dw) return;
  const int taps = kind.kernel * kind.kernel;
  const dim3 blocks((static_cast<unsigned>(n.channels) + 31) / 32,
                    static_cast<unsigned>(taps) + (g.db ? 1 : 0));
  launch(gpu, add_parts, {blocks, 256}, n.channels, taps, static_cast<int>(n.blocks.y), g.parts,
         g.dw, g.db, g.accumulate_w, g.accumulate_b);
}

}  // namespace crema

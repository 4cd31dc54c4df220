// The gradient of a depthwise convolution's weights, and of its bias: blocks walk over patches with
// a thread's sums in registers, then add up what their threads have and leave it as their part; a
// second kernel adds the parts. The order of the additions depends on sizes only.
#include <algorithm>

#include "device/launch.h"
#include "kernels/conv_depthwise.cuh"

namespace crema {
namespace {

// Of a thread's tile.
constexpr int kTileHeight = 2;
CREMA_HD constexpr int tile_width(int64_t stride) { return stride == 1 ? 4 : 2; }

template <typename T, int kKernel, int kStride>
__global__ void __launch_bounds__(kDepthwiseThreads<T>, kKernel == 3 ? 2 : 1)
    depthwise_weights(DepthwiseNumbers n, const T* x, const T* dy, float* parts) {
  constexpr int kTaps = kKernel * kKernel;
  constexpr int kHeight = kTileHeight, kWidth = tile_width(kStride);
  constexpr int kIn = (kWidth - 1) * kStride + kKernel;
  extern __shared__ __align__(128) unsigned char memory[];
  const DepthwiseTile tile(n);
  const int x_place = tile.place_in<T>(n.in), dy_place = tile.place_in<T>(n.out);
  const int stage_bytes = n.in.bytes + n.out.bytes;

  float sums[kTaps + 1][kDepthwisePack] = {};  // the last: of dy alone
  const auto load = [&](const DepthwisePatch& patch, int stage) {
    const uint32_t to = shared_address(memory) + stage * stage_bytes;
    load_region(n, n.in, x, patch, to);
    load_region(n, n.out, dy, patch, to + n.in.bytes);
  };
  // Where there are no places dy is zero.
  const auto compute = [&](const DepthwisePatch&, int stage) {
    if (!tile.inside) return;
    const unsigned char* image = memory + stage * stage_bytes + x_place;
    const unsigned char* const gradient = memory + stage * stage_bytes + n.in.bytes + dy_place;
    float g[kHeight][kWidth][kDepthwisePack];
#pragma unroll
    for (int i = 0; i < kHeight; ++i) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        load_place<T>(gradient + (i * n.out.columns + j) * kDepthwiseLine, g[i][j]);
#pragma unroll
        for (int k = 0; k < kDepthwisePack; ++k) sums[kTaps][k] += g[i][j][k];
      }
    }
#pragma unroll
    for (int r = 0; r < (kHeight - 1) * kStride + kKernel; ++r) {
      float in[kIn][kDepthwisePack];
#pragma unroll
      for (int j = 0; j < kIn; ++j) load_place<T>(image + j * kDepthwiseLine, in[j]);
      image += n.in.columns * kDepthwiseLine;
#pragma unroll
      for (int i = 0; i < kHeight; ++i) {
        if (r < i * kStride || r >= i * kStride + kKernel) continue;
#pragma unroll
        for (int s = 0; s < kKernel; ++s) {
#pragma unroll
          for (int j = 0; j < kWidth; ++j) {
#pragma unroll
            for (int k = 0; k < kDepthwisePack; ++k)
              sums[(r - i * kStride) * kKernel + s][k] += g[i][j][k] * in[j * kStride + s][k];
          }
        }
      }
    }
  };
  over_patches(n, load, compute);

  // All copies have arrived and been read.
  float* const shared = reinterpret_cast<float*>(memory);
  const int across = n.lanes * kDepthwisePack, first = static_cast<int>(blockIdx.x) * across;
  const int at = static_cast<int>(threadIdx.x) * kDepthwisePack;
#pragma unroll
  for (int tap = 0; tap <= kTaps; ++tap) {
#pragma unroll
    for (int k = 0; k < kDepthwisePack; ++k) shared[at + k] = sums[tap][k];
    __syncthreads();
    const int c = static_cast<int>(threadIdx.x);
    if (c < across && first + c < n.channels) {
      float total = 0;
#pragma unroll
      for (int other = 0; other < kDepthwiseTiles; ++other) total += shared[other * across + c];
      parts[(static_cast<int64_t>(blockIdx.y) * (kTaps + 1) + tap) * n.channels + first + c] =
          total;
    }
    __syncthreads();
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
  if (warp > 0 || channel >= channels || (tap == taps && !db)) return;
#pragma unroll
  for (int other = 1; other < 8; ++other) sum += shared[other][lane];
  float& to = tap < taps ? dw[static_cast<int64_t>(channel) * taps + tap] : db[channel];
  to = (tap < taps ? accumulate_w : accumulate_b) ? to + sum : sum;
}

int blocks_of(const DepthwiseNumbers& n, int64_t kernel) {
  return static_cast<int>(n.grid(kernel == 3 ? kDepthwiseBlocks : kDepthwiseBlocks / 2).y);
}

template <typename T, int kKernel, int kStride>
void start(const Gpu& gpu, const DepthwiseNumbers& n, const DepthwiseSums& s) {
  constexpr int kTaps = kKernel * kKernel;
  const int parts = blocks_of(n, kKernel);
  const auto kernel = depthwise_weights<T, kKernel, kStride>;
  const int sums_bytes = n.lanes * kDepthwiseTiles * kDepthwisePack * 4;
  const int bytes = std::max(2 * (n.in.bytes + n.out.bytes), sums_bytes);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "reserving shared memory");
  launch(gpu, kernel,
         {dim3(static_cast<unsigned>(n.cuts), static_cast<unsigned>(parts)), n.threads(),
          static_cast<size_t>(bytes)},
         n, static_cast<const T*>(s.x), static_cast<const T*>(s.dy), s.parts);
  add_depthwise_parts(gpu, n.channels, kTaps, parts, s);
}

template <typename T>
void start(const Gpu& gpu, const DepthwiseNumbers& n, int kernel, int stride,
           const DepthwiseSums& s) {
  if (kernel == 3) return stride == 1 ? start<T, 3, 1>(gpu, n, s) : start<T, 3, 2>(gpu, n, s);
  return stride == 1 ? start<T, 5, 1>(gpu, n, s) : start<T, 5, 2>(gpu, n, s);
}

}  // namespace

void add_depthwise_parts(const Gpu& gpu, int channels, int taps, int count,
                         const DepthwiseSums& s) {
  const dim3 blocks((static_cast<unsigned>(channels) + 31) / 32, static_cast<unsigned>(taps) + 1);
  launch(gpu, add_parts, {blocks, 256}, channels, taps, count, s.parts, s.dw, s.db, s.accumulate_w,
         s.accumulate_b);
}

DepthwiseNumbers depthwise_weights_numbers(const ConvCase& c) {
  return depthwise_numbers(c.x, c.y, c.dtype,
                           {c.w[2], c.stride[0], c.dilation[0], c.pad[0], c.pad[1], kTileHeight,
                            tile_width(c.stride[0])});
}

int64_t depthwise_parts(const DepthwiseNumbers& n, int64_t kernel) {
  return blocks_of(n, kernel) * (kernel * kernel + 1) * n.channels;
}

void start_depthwise_weights(const Gpu& gpu, const DepthwiseNumbers& n, DType dtype, int kernel,
                             int stride, const DepthwiseSums& sums) {
  switch (dtype) {
    case DType::f16:
      return start<Half>(gpu, n, kernel, stride, sums);
    case DType::bf16:
      return start<BFloat16>(gpu, n, kernel, stride, sums);
    default:
      return start<float>(gpu, n, kernel, stride, sums);
  }
}

}  // namespace crema

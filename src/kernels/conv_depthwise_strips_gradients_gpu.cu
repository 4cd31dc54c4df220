// Both gradients of a depthwise convolution of 16-bit images with stride 1, from one pass over x
// and dy: dx[q] sums w[t] dy[q + pad - t] and dw[t] sums x[q] dy[q + pad - t], so both need the
// places of dy around q. See conv_depthwise_strips.cuh. For dx a warp has all of a block's channels
// in some of its strips, for dw eight channels in all strips.
#include "device/launch.h"
#include "kernels/conv_depthwise_strips.cuh"

namespace crema {
namespace {

constexpr int kStages = 5;
constexpr int kBlocks = 2;  // on a multiprocessor

// A warp's sums for two taps at a time: those of its channels on the diagonal of the upper and of
// the lower half.
template <typename T, int kKernel>
struct StripProducts {
  static constexpr int kTaps = kKernel * kKernel, kRows = kStripRows + kKernel - 1;
  float sums[(kTaps + 1) / 2][4] = {};
  float bias[4] = {};
  int gradient, beside, image;  // a lane's rows of matrices: shifted by its number / 8, by 4, by 0

  __device__ StripProducts() {
    const int lane = static_cast<int>(threadIdx.x) % 32, place = lane % 8, matrix = lane / 8;
    const int chunk = static_cast<int>(threadIdx.x) / 32;
    gradient = strip_offset(place + matrix, chunk);
    beside = strip_offset(place + 4, chunk);
    image = strip_offset(place, chunk);
  }

  // upper, lower: of dy as in StripWindow; x: of the strip's first row; ones: 1 where a place
  // counts for the bias's gradient.
  __device__ void add(uint32_t upper, uint32_t lower, int row_bytes, uint32_t x, int x_row_bytes,
                      bool with_bias, uint32_t ones) {
    const int matrix = static_cast<int>(threadIdx.x) % 32 / 8;
    uint32_t in[4], dy[kRows][kKernel];
    load_transposed(in, x + image + matrix * x_row_bytes);
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      uint32_t four[4];
      load_transposed(four, (j < 4 ? upper : lower) + j % 4 * row_bytes + gradient);
#pragma unroll
      for (int s = 0; s < (kKernel < 4 ? kKernel : 4); ++s) dy[j][s] = four[s];
    }
    if constexpr (kKernel == 5) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t four[4];
        load_transposed(four, (half == 0 ? upper : lower) + matrix * row_bytes + beside);
#pragma unroll
        for (int j = 0; j < 4; ++j) dy[half * 4 + j][4] = four[j];
      }
    }
#pragma unroll
    for (int p = 0; p < kStripRows; p += 2) {
#pragma unroll
      for (int tap = 0; tap < kTaps; tap += 2) {
        const int r = tap / kKernel, s = tap % kKernel;
        const int other = tap + 1 < kTaps ? tap + 1 : tap;
        const int other_r = other / kKernel, other_s = other % kKernel;
        const uint32_t a[4] = {dy[p + r][s], dy[p + other_r][other_s], dy[p + 1 + r][s],
                               dy[p + 1 + other_r][other_s]};
        multiply_add<T>(sums[tap / 2], a, in[p], in[p + 1]);
      }
      if (with_bias) {
        constexpr int kPad = kKernel / 2;
        const uint32_t a[4] = {dy[p + kPad][kPad], 0, dy[p + 1 + kPad][kPad], 0};
        multiply_add<T>(bias, a, ones, ones);
      }
    }
  }

  // Each sum has one thread.
  __device__ void store(const StripNumbers& n, bool with_bias, float* parts) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4;
    const int channel = static_cast<int>(blockIdx.x) * kStripChannels +
                        static_cast<int>(threadIdx.x) / 32 * 8 + row;
    if (lane % 4 != row / 2 || channel >= n.channels) return;
    const int part = static_cast<int>(blockIdx.z * gridDim.y + blockIdx.y);
    float* const to = parts + static_cast<int64_t>(part) * (kTaps + 1) * n.channels + channel;
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      const float(&pair)[4] = sums[tap / 2];
      // dy's places are counted in the other direction than the weights' taps.
      to[static_cast<int64_t>(kTaps - 1 - tap) * n.channels] =
          row % 2 ? pair[tap % 2 * 2 + 1] : pair[tap % 2 * 2];
    }
    if (with_bias) to[static_cast<int64_t>(kTaps) * n.channels] = row % 2 ? bias[1] : bias[0];
  }
};

template <typename T, int kKernel>
__global__ void __launch_bounds__(kStripThreads, kBlocks)
    depthwise_strip_gradients(StripNumbers n, const T* x, const T* dy, const T* w, T* dx,
                              float* parts, bool bias) {
  constexpr int kTaps = kKernel * kKernel, kPad = kKernel / 2;
  __shared__ __align__(16) unsigned char weights_memory[kTaps * kStripPlace];
  T* const weights = reinterpret_cast<T*>(weights_memory);
  extern __shared__ __align__(128) unsigned char memory[];
  if (dx) load_strip_weights<T, kTaps>(n, w, true, weights);
  const StripWindow<T, kKernel> window(weights);
  StripProducts<T, kKernel> products;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first = static_cast<int>(blockIdx.y) * n.steps * n.stage_rows;
  const int left = static_cast<int>(blockIdx.z) * n.band;
  const int row_bytes = n.pitch * kStripPlace, x_row_bytes = n.strips * 8 * kStripPlace;
  const int all_bytes = n.image_bytes(kStages);
  unsigned char* const image = memory + all_bytes;
  clear_beside(n, memory, kStages * n.stage_rows, row_bytes, kKernel);
  clear_columns(image, kStages * n.stage_rows, x_row_bytes, n.band, n.strips * 8);
  __syncthreads();

  const auto load = [&](int stage, int slot) {
    const int row = first + stage * n.stage_rows;
    load_stream<1>(n, n.by_columns, dy, row - kPad, stage < n.steps ? n.stage_rows : 2 * kPad,
                   left - kPad, shared_address(memory) + slot * n.stage_rows * row_bytes,
                   row_bytes);
    load_stream<1>(n, n.by_band, x, row, stage < n.steps ? n.stage_rows : 0, left,
                   shared_address(image) + slot * n.stage_rows * x_row_bytes, x_row_bytes);
  };
  const auto compute = [&](int step, int slot) {
    const int quads = n.stage_rows / kStripRows;
    const auto rows_at = [&](int quad, int strip, int& upper, int& lower) {
      const int at = (slot * n.stage_rows + quad * kStripRows) * row_bytes;
      const int below = at + kStripRows * row_bytes;
      upper = at + strip * 8 * kStripPlace;
      lower = (below < all_bytes ? below : 0) + strip * 8 * kStripPlace;
    };
    int upper, lower;
    for (int task = warp; dx && task < n.strips * quads; task += kStripThreads / 32) {
      int strip;
      const int quad = n.by_strips.split(task, strip);
      rows_at(quad, strip, upper, lower);
      float sums[kStripRows / 2][4][4] = {};
      window.add(memory + upper, memory + lower, row_bytes, sums);
      store_strip<kStripRows>(n, first + step * n.stage_rows + quad * kStripRows, left, strip, sums,
                              {}, dx);
    }
    for (int quad = 0; quad < quads; ++quad) {
      for (int strip = 0; strip < n.strips; ++strip) {
        rows_at(quad, strip, upper, lower);
        products.add(shared_address(memory) + upper, shared_address(memory) + lower, row_bytes,
                     shared_address(image) +
                         (slot * n.stage_rows + quad * kStripRows) * x_row_bytes +
                         strip * 8 * kStripPlace,
                     x_row_bytes, bias, strip_ones<T>(n, left, strip));
      }
    }
  };
  over_stream<kStages>(n.steps, load, compute);
  products.store(n, bias, parts);
}

template <typename T, int kKernel>
void start(const Gpu& gpu, const StripNumbers& n, const StripGradients& g) {
  const auto kernel = depthwise_strip_gradients<T, kKernel>;
  const int bytes = n.image_bytes(kStages) + n.band_bytes(kStages);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "reserving shared memory");
  launch(gpu, kernel, {n.blocks, kStripThreads, static_cast<size_t>(bytes)}, n,
         static_cast<const T*>(g.x), static_cast<const T*>(g.dy), static_cast<const T*>(g.w),
         static_cast<T*>(g.dx), g.parts, g.bias);
}

template <typename T>
void start(const Gpu& gpu, const StripNumbers& n, int kernel, const StripGradients& g) {
  return kernel == 3 ? start<T, 3>(gpu, n, g) : start<T, 5>(gpu, n, g);
}

}  // namespace

StripNumbers strip_gradients_numbers(const ConvCase& c) {
  const int kernel = static_cast<int>(c.w[2]);
  return {c.y, c.x, kernel, kernel / 2, kStripRows, kBlocks * kMultiprocessors};
}

void start_strip_gradients(const Gpu& gpu, const StripNumbers& n, const StripKind& kind,
                           const StripGradients& gradients) {
  kind.dtype == DType::f16 ? start<Half>(gpu, n, kind.kernel, gradients)
                           : start<BFloat16>(gpu, n, kind.kernel, gradients);
}

}  // namespace crema

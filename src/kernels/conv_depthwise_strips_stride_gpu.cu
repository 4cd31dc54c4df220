// Both gradients of a depthwise convolution of 16-bit images with stride 2, from one pass over x
// and dy: see conv_depthwise_strips.cuh. The stream has the rows of dy. A place (i, j) of dy goes
// with the four places (2i, 2j) to (2i + 1, 2j + 1) of x; those of one parity meet dy through the
// same taps, and each tap belongs to one parity.
#include "device/launch.h"
#include "kernels/conv_depthwise_strips.cuh"

namespace crema {
namespace {

constexpr int kStages = 5;
constexpr int kBlocks = 2;  // on a multiprocessor
constexpr int kRows = 2;    // of dy that a warp computes at a time

// Along an axis: which of dy's places around its own a place of x meets, and through which tap.
template <int kKernel>
struct Meeting {
  static constexpr int kWindow = (kKernel + 1) / 2, kBefore = kKernel / 4;
  static constexpr int kPairs = (kKernel * kKernel + 1) / 2;
  CREMA_HD static constexpr int tap(int odd, int at) {
    return odd + kKernel / 2 - 2 * (at - kBefore);
  }
  CREMA_HD static constexpr int first(int odd) { return tap(odd, 0) < kKernel ? 0 : 1; }
  CREMA_HD static constexpr int count(int odd) {
    return (kKernel + 1 - (odd + kKernel / 2) % 2) / 2;
  }
  // Taps for one parity are summed two at a time: how many such pairs those before it have.
  CREMA_HD static constexpr int pairs(int parity) {
    return (count(parity / 2) * count(parity % 2) + 1) / 2;
  }
  CREMA_HD static constexpr int pairs_before(int parity) {
    return (parity > 0 ? pairs(0) : 0) + (parity > 1 ? pairs(1) : 0) + (parity > 2 ? pairs(2) : 0);
  }
};

// dx in the two rows of one parity, in a strip: its sums in columns of both parities.
template <typename T, int kKernel, int kDown>
__device__ void add_dx(const StripWindow<T, Meeting<kKernel>::kWindow>& window,
                       const unsigned char* upper, const unsigned char* lower, int row_bytes,
                       float (&sums)[2][4][4]) {
  using M = Meeting<kKernel>;
  uint32_t rows[2][M::kWindow][4];
  window.load(upper + M::first(kDown) * row_bytes, rows[0]);
#pragma unroll
  for (int i = 0; i < M::count(kDown); ++i) {
    const int r = M::first(kDown) + i, next = r + 1;
    window.load((next < kRows ? upper : lower) + next % kRows * row_bytes, rows[(i + 1) % 2]);
    const auto& above = rows[i % 2];
    const auto& below = rows[(i + 1) % 2];
    const int line = M::tap(kDown, r) * kKernel;
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const int end = M::first(b) + M::count(b);
#pragma unroll
      for (int s = M::first(b); s + 1 < end; s += 2) {
        uint32_t left[4], right[4];
        window.diagonal(line + M::tap(b, s), left);
        window.diagonal(line + M::tap(b, s + 1), right);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const uint32_t a[4] = {above[s][k], below[s][k], above[s + 1][k], below[s + 1][k]};
          multiply_add<T>(sums[b][k], a, left[k], right[k]);
        }
      }
      if (M::count(b) % 2 == 0) continue;
      uint32_t last[4];
      window.diagonal(line + M::tap(b, end - 1), last);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const uint32_t a[2] = {above[end - 1][k], below[end - 1][k]};
        multiply_add<T>(sums[b][k], a, last[k]);
      }
    }
  }
}

// first: the stream's row of the sums; left: the band's first column of dy.
template <typename T>
__device__ void store_dx(const StripNumbers& n, int first, int down, int left, int strip,
                         const float (&sums)[2][4][4], T* to) {
  const int lane = static_cast<int>(threadIdx.x) % 32, column = strip * 8 + lane / 4;
  const int channel = static_cast<int>(blockIdx.x) * kStripChannels + lane % 4 * 8;
  if (column >= n.band || channel >= n.channels) return;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    int row;
    const int image = n.by_padded.split(first + i, row), y = 2 * row + down;
    if (image >= n.images || row >= n.height || y >= n.image_height) continue;
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      const int x = 2 * (left + column) + b;
      if (x >= n.image_width) continue;
      Pack<T, 8> out;
#pragma unroll
      for (int k = 0; k < 8; ++k) out.v[k] = T(sums[b][k / 2][i * 2 + k % 2]);
      const int64_t place = (image * n.image_height + y) * n.image_width + x;
      *reinterpret_cast<Pack<T, 8>*>(to + place * n.channels + channel) = out;
    }
  }
}

// A warp's sums for dw: for two taps of one parity at a time those of its channels on the diagonal
// of the upper and of the lower half.
template <typename T, int kKernel>
struct SpreadProducts {
  using M = Meeting<kKernel>;
  float sums[M::kPairs][4] = {};
  float bias[4] = {};
  int gradient, image;  // a lane's rows of matrices

  __device__ explicit SpreadProducts(const StripNumbers& n, int x_row_bytes) {
    const int lane = static_cast<int>(threadIdx.x) % 32, place = lane % 8, matrix = lane / 8;
    const int chunk = static_cast<int>(threadIdx.x) / 32;
    gradient = strip_offset(place + matrix, chunk);
    image = strip_offset(matrix % 2 * n.strips * 8 + place, chunk) + matrix / 2 * 2 * x_row_bytes;
  }

  // x: of the strip's first row; ones: 1 where a place counts for the bias's gradient.
  __device__ void add(uint32_t upper, uint32_t lower, int row_bytes, uint32_t x, int x_row_bytes,
                      bool with_bias, uint32_t ones) {
    uint32_t in[2][4], dy[M::kWindow + 1][4];
    load_transposed(in[0], x + image);
    load_transposed(in[1], x + image + x_row_bytes);
#pragma unroll
    for (int j = 0; j <= M::kWindow; ++j)
      load_transposed(dy[j], (j < kRows ? upper : lower) + j % kRows * row_bytes + gradient);
#pragma unroll
    for (int parity = 0; parity < 4; ++parity) {
      const int down = parity / 2, across = parity % 2, taps = M::count(down) * M::count(across);
#pragma unroll
      for (int tap = 0; tap < taps; tap += 2) {
        const int other = tap + 1 < taps ? tap + 1 : tap;
        const int r = M::first(down) + tap / M::count(across);
        const int s = M::first(across) + tap % M::count(across);
        const int other_r = M::first(down) + other / M::count(across);
        const int other_s = M::first(across) + other % M::count(across);
        const uint32_t a[4] = {dy[r][s], dy[other_r][other_s], dy[r + 1][s],
                               dy[other_r + 1][other_s]};
        multiply_add<T>(sums[M::pairs_before(parity) + tap / 2], a, in[down][across],
                        in[down][2 + across]);
      }
    }
    if (with_bias) {
      const uint32_t a[4] = {dy[M::kBefore][M::kBefore], 0, dy[M::kBefore + 1][M::kBefore], 0};
      multiply_add<T>(bias, a, ones, ones);
    }
  }

  // Each sum has one thread.
  __device__ void store(const StripNumbers& n, bool with_bias, float* parts) const {
    constexpr int kTaps = kKernel * kKernel;
    const int lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4;
    const int channel = static_cast<int>(blockIdx.x) * kStripChannels +
                        static_cast<int>(threadIdx.x) / 32 * 8 + row;
    if (lane % 4 != row / 2 || channel >= n.channels) return;
    const int part = static_cast<int>(blockIdx.z * gridDim.y + blockIdx.y);
    float* const to = parts + static_cast<int64_t>(part) * (kTaps + 1) * n.channels + channel;
#pragma unroll
    for (int parity = 0; parity < 4; ++parity) {
      const int down = parity / 2, across = parity % 2;
#pragma unroll
      for (int tap = 0; tap < M::count(down) * M::count(across); ++tap) {
        const float(&pair)[4] = sums[M::pairs_before(parity) + tap / 2];
        const int r = M::tap(down, M::first(down) + tap / M::count(across));
        const int s = M::tap(across, M::first(across) + tap % M::count(across));
        to[static_cast<int64_t>(r * kKernel + s) * n.channels] =
            row % 2 ? pair[tap % 2 * 2 + 1] : pair[tap % 2 * 2];
      }
    }
    if (with_bias) to[static_cast<int64_t>(kTaps) * n.channels] = row % 2 ? bias[1] : bias[0];
  }
};

template <typename T, int kKernel>
__global__ void __launch_bounds__(kStripThreads, kBlocks)
    depthwise_spread_gradients(StripNumbers n, const T* x, const T* dy, const T* w, T* dx,
                               float* parts, bool bias) {
  using M = Meeting<kKernel>;
  constexpr int kTaps = kKernel * kKernel;
  __shared__ __align__(16) unsigned char weights_memory[kTaps * kStripPlace];
  T* const weights = reinterpret_cast<T*>(weights_memory);
  extern __shared__ __align__(128) unsigned char memory[];
  if (dx) load_strip_weights<T, kTaps>(n, w, false, weights);
  const StripWindow<T, M::kWindow> window(weights);
  const int row_bytes = n.pitch * kStripPlace, x_row_bytes = n.strips * 16 * kStripPlace;
  SpreadProducts<T, kKernel> products(n, x_row_bytes);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first = static_cast<int>(blockIdx.y) * n.steps * n.stage_rows;
  const int left = static_cast<int>(blockIdx.z) * n.band;
  const int all_bytes = n.image_bytes(kStages);
  unsigned char* const image = memory + all_bytes;
  clear_beside(n, memory, kStages * n.stage_rows, row_bytes, M::kWindow);
  for (int half = 0; half < 2; ++half) {
    clear_columns(image, kStages * n.stage_rows * 2, x_row_bytes, half * n.strips * 8 + n.band,
                  (half + 1) * n.strips * 8);
  }
  __syncthreads();

  const auto load = [&](int stage, int slot) {
    const int row = first + stage * n.stage_rows;
    load_stream<1>(n, n.by_columns, dy, row - M::kBefore,
                   stage < n.steps ? n.stage_rows : M::kWindow - 1, left - M::kBefore,
                   shared_address(memory) + slot * n.stage_rows * row_bytes, row_bytes);
    load_stream<2>(n, n.by_two_bands, x, row, parts && stage < n.steps ? 2 * n.stage_rows : 0,
                   2 * left, shared_address(image) + slot * n.stage_rows * 2 * x_row_bytes,
                   x_row_bytes, n.strips * 8);
  };
  const auto compute = [&](int step, int slot) {
    const int pairs = n.stage_rows / kRows;
    const auto rows_at = [&](int pair, int strip, int& upper, int& lower) {
      const int at = (slot * n.stage_rows + pair * kRows) * row_bytes;
      const int below = at + kRows * row_bytes;
      upper = at + strip * 8 * kStripPlace;
      lower = (below < all_bytes ? below : 0) + strip * 8 * kStripPlace;
    };
    int upper, lower;
    for (int task = warp; dx && task < n.strips * pairs; task += kStripThreads / 32) {
      int strip;
      const int pair = n.by_strips.split(task, strip);
      rows_at(pair, strip, upper, lower);
      const int row = first + step * n.stage_rows + pair * kRows;
      const auto one_parity = [&]<int kDown>() {
        float sums[2][4][4] = {};
        add_dx<T, kKernel, kDown>(window, memory + upper, memory + lower, row_bytes, sums);
        store_dx(n, row, kDown, left, strip, sums, dx);
      };
      one_parity.template operator()<0>();
      one_parity.template operator()<1>();
    }
    for (int pair = 0; parts && pair < pairs; ++pair) {
      for (int strip = 0; strip < n.strips; ++strip) {
        rows_at(pair, strip, upper, lower);
        products.add(shared_address(memory) + upper, shared_address(memory) + lower, row_bytes,
                     shared_address(image) +
                         (slot * n.stage_rows + pair * kRows) * 2 * x_row_bytes +
                         strip * 8 * kStripPlace,
                     x_row_bytes, bias, strip_ones<T>(n, left, strip));
      }
    }
  };
  over_stream<kStages>(n.steps, load, compute);
  if (parts) products.store(n, bias, parts);
}

template <typename T, int kKernel>
void start(const Gpu& gpu, const StripNumbers& n, const StripGradients& g) {
  const auto kernel = depthwise_spread_gradients<T, kKernel>;
  const int bytes = n.image_bytes(kStages) + 4 * n.band_bytes(kStages);
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

StripNumbers spread_gradients_numbers(const ConvCase& c) {
  return {c.y, c.x, static_cast<int>(c.w[2] + 1) / 2, 1, kRows, kBlocks * kMultiprocessors};
}

void start_spread_gradients(const Gpu& gpu, const StripNumbers& n, const StripKind& kind,
                            const StripGradients& gradients) {
  kind.dtype == DType::f16 ? start<Half>(gpu, n, kind.kernel, gradients)
                           : start<BFloat16>(gpu, n, kind.kernel, gradients);
}

}  // namespace crema

// Depthwise convolution of 16-bit images: forward, and with stride 1 the gradient of the data,
// which is the same with mirrored weights. See conv_depthwise_strips.cuh.
#include "device/launch.h"
#include "kernels/conv_depthwise_strips.cuh"

namespace crema {
namespace {

constexpr int kStages = 6;
constexpr int kBlocks = 3;  // on a multiprocessor

template <typename T, int kKernel>
__global__ void __launch_bounds__(kStripThreads, kBlocks)
    depthwise_strips(StripNumbers n, const T* x, const T* w, const T* bias, DepthwiseEnd end,
                     bool mirrored, T* y) {
  constexpr int kTaps = kKernel * kKernel, kPad = kKernel / 2;
  __shared__ __align__(16) unsigned char weights_memory[kTaps * kStripPlace];
  T* const weights = reinterpret_cast<T*>(weights_memory);
  extern __shared__ __align__(128) unsigned char memory[];
  load_strip_weights<T, kTaps>(n, w, mirrored, weights);
  const StripWindow<T, kKernel> window(weights);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int channel =
      static_cast<int>(blockIdx.x) * kStripChannels + static_cast<int>(threadIdx.x) % 4 * 8;
  Pack<T, 8> biases{};
  if (bias && channel < n.channels) biases = *reinterpret_cast<const Pack<T, 8>*>(bias + channel);
  const int first = static_cast<int>(blockIdx.y) * n.steps * n.stage_rows;
  const int left = static_cast<int>(blockIdx.z) * n.band;
  const int row_bytes = n.pitch * kStripPlace, all_bytes = n.image_bytes(kStages);

  const auto load = [&](int stage, int slot) {
    load_stream<1>(n, n.by_columns, x, first - kPad + stage * n.stage_rows,
                   stage < n.steps ? n.stage_rows : 2 * kPad, left - kPad,
                   shared_address(memory) + slot * n.stage_rows * row_bytes, row_bytes);
  };
  const auto compute = [&](int step, int slot) {
    for (int task = warp; task < n.strips * n.stage_rows / kStripRows; task += kStripThreads / 32) {
      int strip;
      const int row = n.by_strips.split(task, strip) * kStripRows;
      const int upper = (slot * n.stage_rows + row) * row_bytes;
      const int lower = upper + kStripRows * row_bytes;
      const unsigned char* const from = memory + strip * 8 * kStripPlace;
      float sums[kStripRows / 2][4][4];
#pragma unroll
      for (int i = 0; i < 32; ++i)
        sums[i / 16][i / 4 % 4][i % 4] = static_cast<float>(biases.v[i / 4 % 4 * 2 + i % 2]);
      window.add(from + upper, from + (lower < all_bytes ? lower : 0), row_bytes, sums);
      store_strip<kStripRows>(n, first + step * n.stage_rows + row, left, strip, sums, end, y);
    }
  };
  over_stream<kStages>(n.steps, load, compute);
}

// With stride 2. The stream has the rows of y, and two of x for each.
constexpr int kSpreadStages = 4, kSpreadBlocks = 3, kSpreadRows = 2;

template <typename T, int kKernel>
__global__ void __launch_bounds__(kStripThreads, kSpreadBlocks)
    depthwise_spread_strips(StripNumbers n, const T* x, const T* w, const T* bias, DepthwiseEnd end,
                            T* y) {
  constexpr int kTaps = kKernel * kKernel, kPad = kKernel / 2;
  constexpr int kFirst =
      2 - kPad;  // rows and columns of x from the first that are here to a window
  __shared__ __align__(16) unsigned char weights_memory[kTaps * kStripPlace];
  T* const weights = reinterpret_cast<T*>(weights_memory);
  extern __shared__ __align__(128) unsigned char memory[];
  load_strip_weights<T, kTaps>(n, w, false, weights);
  StripWindow<T, kKernel> window(weights);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int s = 0; s < kKernel; ++s) {
    const int column = kFirst + s;
    window.shift[s] = strip_offset(column % 2 * n.pitch + column / 2 + lane / 4, lane % 4);
  }
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int channel = static_cast<int>(blockIdx.x) * kStripChannels + lane % 4 * 8;
  Pack<T, 8> biases{};
  if (bias && channel < n.channels) biases = *reinterpret_cast<const Pack<T, 8>*>(bias + channel);
  const int first = static_cast<int>(blockIdx.y) * n.steps * n.stage_rows;
  const int left = static_cast<int>(blockIdx.z) * n.band;
  const int row_bytes = 2 * n.pitch * kStripPlace, all_bytes = 4 * n.image_bytes(kSpreadStages);

  const auto load = [&](int stage, int slot) {
    load_stream<2>(n, n.by_two_columns, x, first - 1 + stage * n.stage_rows,
                   stage < n.steps ? 2 * n.stage_rows : 2 * kPad, 2 * left - 2,
                   shared_address(memory) + slot * n.stage_rows * 2 * row_bytes, row_bytes,
                   n.pitch);
  };
  const auto compute = [&](int step, int slot) {
    for (int task = warp; task < n.strips * n.stage_rows / kSpreadRows;
         task += kStripThreads / 32) {
      int strip;
      const int row = n.by_strips.split(task, strip) * kSpreadRows;
      const int upper = (slot * n.stage_rows + row) * 2 * row_bytes;
      const int lower = upper + 2 * kSpreadRows * row_bytes;
      const unsigned char* const from = memory + strip * 8 * kStripPlace;
      float sums[1][4][4];
#pragma unroll
      for (int i = 0; i < 16; ++i)
        sums[0][i / 4][i % 4] = static_cast<float>(biases.v[i / 4 * 2 + i % 2]);
      window.add_spread(from + upper + kFirst * row_bytes,
                        from + (lower < all_bytes ? lower : 0) - (4 - kFirst) * row_bytes,
                        4 - kFirst, row_bytes, sums[0]);
      store_strip<kSpreadRows>(n, first + step * n.stage_rows + row, left, strip, sums, end, y);
    }
  };
  over_stream<kSpreadStages>(n.steps, load, compute);
}

template <typename Kernel, typename... Arguments>
void start(const Gpu& gpu, Kernel* kernel, const StripNumbers& n, int bytes,
           const Arguments&... arguments) {
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
             "reserving shared memory");
  launch(gpu, kernel, {n.blocks, kStripThreads, static_cast<size_t>(bytes)}, n, arguments...);
}

template <typename T, int kKernel>
void start(const Gpu& gpu, const StripNumbers& n, int stride, const StripSums& s) {
  const auto *const x = static_cast<const T*>(s.x), *const w = static_cast<const T*>(s.w),
                    *const bias = static_cast<const T*>(s.bias);
  auto* const y = static_cast<T*>(s.y);
  // The last strip may look beyond the last row.
  const int row_bytes = n.pitch * kStripPlace;
  if (stride == 1) {
    start(gpu, depthwise_strips<T, kKernel>, n, n.image_bytes(kStages) + row_bytes, x, w, bias,
          s.end, s.mirrored, y);
  } else {
    start(gpu, depthwise_spread_strips<T, kKernel>, n, 4 * n.image_bytes(kSpreadStages) + row_bytes,
          x, w, bias, s.end, y);
  }
}

template <typename T>
void start(const Gpu& gpu, const StripNumbers& n, const StripKind& kind, const StripSums& s) {
  kind.kernel == 3 ? start<T, 3>(gpu, n, kind.stride, s) : start<T, 5>(gpu, n, kind.stride, s);
}

}  // namespace

StripNumbers strip_sums_numbers(const ConvCase& c) {
  const int kernel = static_cast<int>(c.w[2]);
  if (c.stride[0] == 2) return {c.y, c.x, 3, 1, kSpreadRows, kSpreadBlocks * kMultiprocessors};
  return {c.y, c.x, kernel, kernel / 2, kStripRows, kBlocks * kMultiprocessors};
}

void start_strip_sums(const Gpu& gpu, const StripNumbers& n, const StripKind& kind,
                      const StripSums& sums) {
  kind.dtype == DType::f16 ? start<Half>(gpu, n, kind, sums) : start<BFloat16>(gpu, n, kind, sums);
}

}  // namespace crema

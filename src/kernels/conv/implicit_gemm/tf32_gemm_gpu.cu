// The kernels of tf32_gemm.h. A block computes a tile of the result, kDepth steps of the reduction
// at a time, from tiles of both operands that are copied to shared memory kStages - 1 steps ahead.
#include <algorithm>

#include "base/ceil_div.h"
#include "device/multiprocessors.h"
#include "device/programmatic_launch.h"
#include "kernels/conv/implicit_gemm/tf32_gemm.cuh"
#include "kernels/conv/implicit_gemm/tf32_gemm.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int kTf32Shapes = 3;
constexpr TileExtent kTf32Tiles[kTf32Shapes] = {{128, 64}, {64, 64}, {64, 32}};

// Stores an element of the result.
template <ConvCall kCall>
__device__ void store_result(const ImplicitGemmParams& n, int group, int row, int column,
                             float value) {
  if (row >= n.geometry.rows || column >= n.geometry.columns) return;
  const int64_t at =
      group * n.geometry.out_group + static_cast<int64_t>(row) * n.geometry.out_pixel + column;
  float* const to = static_cast<float*>(n.operands.out) + at;
  if constexpr (kCall == ConvCall::fprop) {
    if (n.operands.bias)
      value += static_cast<const float*>(n.operands.bias)[group * n.geometry.bias_group + column];
    if (n.operands.added) value += static_cast<const float*>(n.operands.added)[at];
    if (n.operands.relu) value = value <= 0 ? 0 : value;  // a NaN stays
  } else {
    value *= n.operands.factor;
    if (kCall == ConvCall::wgrad && n.operands.accumulate_w) value += *to;
  }
  *to = value;
}

template <typename Tile, ConvCall kCall>
__global__ void __launch_bounds__(Tile::threads) tf32_gemm(ImplicitGemmParams params) {
#if __CUDA_ARCH__ >= 800  // older cards lack these instructions: see has_async_mma()
  const ImplicitGemmParams n = params;
  using Layout = GemmLayout<float, kTf32Depth, Tile, kCall>;
  extern __shared__ __align__(128) float tf32_tiles[];
  const uint32_t base = shared_address(tf32_tiles);
  const int group = static_cast<int>(blockIdx.z) / n.split.pieces;
  const int piece = static_cast<int>(blockIdx.z) % n.split.pieces;
  const int first_row = static_cast<int>(blockIdx.x) * Tile::m,
            first_column = static_cast<int>(blockIdx.y) * Tile::n;
  const int all_steps = (n.geometry.depth + kTf32Depth - 1) / kTf32Depth;
  const int begin = piece * n.split.steps_each,
            steps = max(0, min(n.split.steps_each, all_steps - begin));
  const GemmLoads<Layout, Tile, kCall> load(n, group, first_row, first_column);
  wait_for_earlier_kernels();
  Tf32Sums<Tile> sums;
  // Steps below zero only load.
#pragma unroll 1
  for (int step = 1 - kTf32Stages; step < steps; ++step) {
    if (step >= 0) {
      wait_for_copies<kTf32Stages - 2>();
      __syncthreads();
    }
    const int next = step + kTf32Stages - 1;
    if (next < steps) {
      const uint32_t to = base + next % kTf32Stages * Layout::stage * 4;
      load((begin + next) * kTf32Depth, to, to + Layout::A::elements * 4);
    }
    end_copies();
    if (step >= 0) {
      const float* const from = tf32_tiles + step % kTf32Stages * Layout::stage;
      sums.template add<typename Layout::A, typename Layout::B>(from, from + Layout::A::elements);
    }
  }
  let_next_kernel_start();
  if (n.split.pieces == 1) {
    sums.each([&](int row, int column, float value) {
      store_result<kCall>(n, group, first_row + row, first_column + column, value);
    });
    return;
  }
  // The last block of a tile adds the sums of all its pieces, in their order.
  const int tile = static_cast<int>((group * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
  constexpr int kResults = Tile::m * Tile::n;
  float* const all =
      n.operands.partial_sums + static_cast<int64_t>(tile) * n.split.pieces * kResults;
  sums.each([&](int row, int column, float value) {
    all[piece * kResults + row * Tile::n + column] = value;
  });
  if (!last_of(n.operands.counters + tile, n.split.pieces)) return;
  for (int i = static_cast<int>(threadIdx.x); i < kResults; i += Tile::threads) {
    float total = 0;
    for (int other = 0; other < n.split.pieces; ++other)
      total += __ldcg(all + other * kResults + i);
    store_result<kCall>(n, group, first_row + i / Tile::n, first_column + i % Tile::n, total);
  }
#endif
}

template <typename Tile, ConvCall kCall>
void launch_tf32_gemm(const Gpu& gpu, const ImplicitGemmParams& n) {
  const auto kernel = tf32_gemm<Tile, kCall>;
  constexpr int kBytes = GemmLayout<float, kTf32Depth, Tile, kCall>::stage * kTf32Stages * 4;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  check_cuda(allowed, "reserving shared memory");
  const dim3 blocks(ceil_div(n.geometry.rows, Tile::m), ceil_div(n.geometry.columns, Tile::n),
                    n.geometry.groups * n.split.pieces);
  launch_programmatic(gpu, kernel, {blocks, Tile::threads, static_cast<size_t>(kBytes)}, n);
}

template <typename Tile>
void launch_call(const Gpu& gpu, const ImplicitGemmParams& n, ConvCall call) {
  switch (call) {
    case ConvCall::fprop:
      return launch_tf32_gemm<Tile, ConvCall::fprop>(gpu, n);
    case ConvCall::dgrad:
      return launch_tf32_gemm<Tile, ConvCall::dgrad>(gpu, n);
    case ConvCall::wgrad:
      return launch_tf32_gemm<Tile, ConvCall::wgrad>(gpu, n);
    case ConvCall::both_gradients:
      break;  // these kernels compute one
  }
}

void launch_shape(const Gpu& gpu, const ImplicitGemmParams& n, ConvCall call, int shape) {
  if (shape == 0) return launch_call<GemmTile<128, 64, 4, 2>>(gpu, n, call);
  if (shape == 1) return launch_call<GemmTile<64, 64, 4, 2>>(gpu, n, call);
  launch_call<GemmTile<64, 32, 4, 2>>(gpu, n, call);
}

}  // namespace

Tf32Gemm::Tf32Gemm(Context& context, const ConvCase& c, ConvCall call) : c_(c), call_(call) {
  const ImplicitGemmGeometry g = implicit_gemm_geometry(c, call);
  const std::vector<FilterTap> taps = filter_taps(c, call);
  taps_ = Tensor(context, {static_cast<int64_t>(taps.size() * sizeof(FilterTap))}, DType::u8);
  copy_bytes(context, taps_.raw(), Device::gpu, taps.data(), Device::cpu, taps_.bytes());
  rows_ = g.rows, columns_ = g.columns, depth_ = g.depth;
  const int64_t steps = ceil_div(depth_, kTf32Depth);
  for (int shape = 0; shape < kTf32Shapes; ++shape) {
    const int64_t count = tiles(shape),
                  results = kTf32Tiles[shape].rows * kTf32Tiles[shape].columns;
    choices_.push_back({shape, 1});
    for (const int64_t each : {1, 2, 4, 8}) {
      const int64_t pieces = std::min(each * kTypicalMultiprocessors / count, steps / 2);
      if (pieces <= choices_.back().pieces || count > Gpu::kCounters ||
          count * pieces * results > Gpu::kPartialSums)
        continue;
      choices_.push_back({shape, static_cast<int>(pieces)});
    }
  }
  // By default the first that comes to a block for each multiprocessor.
  const auto fills = [&](const Choice& choice) {
    return tiles(choice.shape) * choice.pieces >= kTypicalMultiprocessors;
  };
  const auto found = std::find_if(choices_.begin(), choices_.end(), fills);
  take(static_cast<size_t>(std::min(found, choices_.end() - 1) - choices_.begin()));
}

int64_t Tf32Gemm::tiles(int shape) const {
  return ceil_div(rows_, kTf32Tiles[shape].rows) * ceil_div(columns_, kTf32Tiles[shape].columns) *
         c_.groups;
}

std::string Tf32Gemm::choice_name(size_t choice) const {
  return cat(choices_[choice].shape, "/", choices_[choice].pieces);
}

void Tf32Gemm::launch(Context& context, const ProductTensors& t, size_t index) const {
  const Choice& choice = choices_[index];
  const Gpu& gpu = context.gpu();
  const bool fprop = call_ == ConvCall::fprop;
  ImplicitGemmParams n{};
  n.geometry = implicit_gemm_geometry(c_, call_);
  n.split.pieces = choice.pieces;
  n.split.steps_each = ceil_div(ceil_div(n.geometry.depth, kTf32Depth), choice.pieces);
  n.operands = {.a = fprop ? t.x : t.dy,
                .relu_y = nullptr,
                .b = call_ == ConvCall::wgrad ? t.x : t.w,
                .bias = fprop ? t.b : nullptr,
                .added = fprop ? t.added : nullptr,
                .out = t.out,
                .db = nullptr,
                .taps = static_cast<const FilterTap*>(taps_.raw()),
                .accumulate_w = t.accumulate_w,
                .accumulate_b = false,
                .relu = fprop && (t.added ? c_.sum_relu.on : c_.relu.on),
                .dropout = {},
                .dropout_layout = {},
                .factor = t.gradient_factor,
                .partial_sums = gpu.partial_sums,
                .counters = gpu.counters};
  launch_shape(gpu, n, call_, choice.shape);
}

}  // namespace crema

// The kernels of tf32_gemm.h. A block computes a tile of the result, kDepth steps of the reduction
// at a time, from tiles of both operands that are copied to shared memory kStages - 1 steps ahead.
#include "base/ceil_div.h"
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

Tf32Gemm::Tf32Gemm(Context& context, const ConvCase& c, ConvCall call)
    : SplitProduct(context, c, call, kTf32Tiles, kTf32Depth), c_(c), call_(call) {}

void Tf32Gemm::launch(Context& context, const ProductTensors& t, size_t choice) const {
  const Gpu& gpu = context.gpu();
  const bool fprop = call_ == ConvCall::fprop;
  ImplicitGemmParams n = params(gpu, choice);
  n.operands.a = fprop ? t.x : t.dy;
  n.operands.b = call_ == ConvCall::wgrad ? t.x : t.w;
  n.operands.bias = fprop ? t.b : nullptr;
  n.operands.added = fprop ? t.added : nullptr;
  n.operands.out = t.out;
  n.operands.accumulate_w = t.accumulate_w;
  n.operands.relu = fprop && (t.added ? c_.sum_relu.on : c_.relu.on);
  n.operands.factor = t.gradient_factor;
  launch_shape(gpu, n, call_, shape(choice));
}

}  // namespace crema

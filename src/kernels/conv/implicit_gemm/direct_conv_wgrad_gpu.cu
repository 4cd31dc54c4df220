// wgrad of the direct convolution: rows are outputs, columns are chunks of 8 channels of each tap,
// the reduction runs over positions, divided among the blocks. Each block adds its sums to the
// result; or, if results must be repeatable, clusters of blocks and then the last of all blocks
// reduce them, always in the same order.
#include "kernels/conv/implicit_gemm/direct_conv.cuh"
#include "kernels/conv/implicit_gemm/direct_conv_launch.cuh"
#include "kernels/conv/implicit_gemm/direct_conv_pool.cuh"
#include "kernels/conv/implicit_gemm/implicit_gemm.cuh"
#include "kernels/core/atomic_add.cuh"

namespace crema {
namespace {

// Adds four sums of one output to dw, or to db if in the column after dw's last.
__device__ void store_sums(const DirectConvParams& n, int row, int first_column,
                           const float4& sums) {
  const DirectConvOperands& o = n.operands;
  const float values[4] = {sums.x * o.gradient_factor, sums.y * o.gradient_factor,
                           sums.z * o.gradient_factor, sums.w * o.gradient_factor};
  const int channels = n.windows.image.channels, k_chunks = n.tiling.k_chunks;
  if (row >= n.tiling.second.channels) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int channel;
    const int k = (first_column + i) / 8;
    const int tap = n.tiling.image_tile.by_chunks.split(k, channel);
    channel = channel * 8 + (first_column + i) % 8;
    float* to = nullptr;
    bool add = o.accumulate_w;
    if (k < k_chunks) {
      if (channel < channels)
        to = static_cast<float*>(o.out) + (row * n.windows.taps + tap) * channels + channel;
    } else if (o.db && first_column + i == k_chunks * 8) {
      to = o.db + row;
      add = o.accumulate_b;
    }
    if (to) *to = add ? *to + values[i] : values[i];
  }
}

// Reduces the tiles of sums of all blocks in this column of the grid.
__device__ void finish_blocks(const DirectConvParams& n, float* tile, int rows, int columns) {
  const int quads_in_row = columns / 4, quads = rows * quads_in_row;
  const int blocks = static_cast<int>(gridDim.x), outer = blocks / n.grid.cluster;
  const int rank = static_cast<int>(blockIdx.x) % n.grid.cluster;
  const int share = (quads + n.grid.cluster - 1) / n.grid.cluster;
  const int begin = rank * share, end = min(quads, begin + share);
  const int slot = static_cast<int>(blockIdx.y) * n.grid.cluster + rank;
  float4* const parts = reinterpret_cast<float4*>(n.operands.partial_sums) +
                        static_cast<int64_t>(slot) * outer * share;
  const int first_column = static_cast<int>(blockIdx.y) * columns;
  const auto store = [&](int quad, const float4& sums) {
    store_sums(n, quad / quads_in_row, first_column + quad % quads_in_row * 4, sums);
  };
  cluster_barrier();
  for (int quad = begin + static_cast<int>(threadIdx.x); quad < end;
       quad += static_cast<int>(blockDim.x)) {
    const int at = quad / quads_in_row * n.layout.tile_pitch + quad % quads_in_row * 4;
    float4 total = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int other = 0; other < n.grid.cluster; ++other)
      add_to(total, *reinterpret_cast<const float4*>(of_cluster(tile, other) + at));
    if (outer == 1) {
      store(quad, total);
    } else {
      parts[static_cast<int>(blockIdx.x) / n.grid.cluster * share + quad - begin] = total;
    }
  }
  if (outer > 1 && last_of(n.operands.counters + slot, outer)) {
    for (int quad = begin + static_cast<int>(threadIdx.x); quad < end;
         quad += static_cast<int>(blockDim.x)) {
      float4 total = make_float4(0, 0, 0, 0);
#pragma unroll 8
      for (int other = 0; other < outer; ++other)
        add_to(total, __ldcg(parts + other * share + quad - begin));
      store(quad, total);
    }
  }
  cluster_barrier();  // before it, others may read this block's shared memory
}

// Adds a warp's accumulators, whose first tile of columns is first_tile, to dw and db.
template <int kM, int kN>
__device__ void add_sums(const DirectConvParams& n, const float (&sums)[kM][kN][4], int first_row,
                         int first_tile, int lane) {
  const DirectConvOperands& o = n.operands;
  const int channels = n.windows.image.channels, pitch = n.windows.taps * channels;
  const auto each_row = [&](int j, const auto& add) {
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = first_row + i * 16 + half * 8;
        if (row >= n.tiling.second.channels) continue;
        add(row, sums[i][j][half * 2] * o.gradient_factor,
            sums[i][j][half * 2 + 1] * o.gradient_factor);
      }
    }
  };
#pragma unroll
  for (int j = 0; j < kN; ++j) {
    int channel;
    const int k = first_tile + j, tap = n.tiling.image_tile.by_chunks.split(k, channel);
    channel = channel * 8 + lane % 4 * 2;
    if (k < n.tiling.k_chunks && channel < channels) {
      float* const to = static_cast<float*>(o.out) + tap * channels + channel;
      each_row(j, [&](int row, float first, float second) {
        atomic_add_pair(to + row * pitch, {first, second});
      });
    } else if (k == n.tiling.k_chunks && o.db && lane % 4 == 0) {
      each_row(j, [&](int row, float first, float) { atomicAdd(o.db + row, first); });
    }
  }
}

template <int kM, int kN>
struct GradientFragments {
  uint32_t a[kM][4], b[kN / 2][4];
};

template <typename T, FusedOp kFusedOp, int kM, int kN>
__global__ void __launch_bounds__(384) direct_conv_wgrad(DirectConvParams n) {
#if __CUDA_ARCH__ >= 800
  constexpr bool kReluMask = kFusedOp == FusedOp::relu;
  const DirectConvWindows& windows = n.windows;
  const DirectConvTiling& tiling = n.tiling;
  const DirectConvLayout& layout = n.layout;
  const DirectConvTile& dy_tile = tiling.second_tile;
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t base = shared_address(memory);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp % tiling.warps_m, warp_n = warp / tiling.warps_m;
  const int first_tile = (static_cast<int>(blockIdx.y) * tiling.warps_n + warp_n) * kN;
  const int positions = windows.strip_rows * windows.positions[1], steps = (positions + 15) / 16;

  int* const position_at = reinterpret_cast<int*>(memory);
  for (int position = static_cast<int>(threadIdx.x); position < steps * 16;
       position += static_cast<int>(blockDim.x))
    position_at[position] = window_byte_offset(n, position);
  // Positions after the strip's last: zeros of dy, which no load overwrites.
  for (int stage = 0; stage < layout.stages; ++stage) {
    const uint32_t dy = base + layout.stages_at + stage * layout.stage + layout.dy_at;
    for (int slot = static_cast<int>(threadIdx.x);
         slot < (steps * 16 - positions) * dy_tile.pixel / 16; slot += static_cast<int>(blockDim.x))
      store_zeros(dy + positions * dy_tile.pixel + slot * 16);
  }
  int chunk_at[kN / 2];
#pragma unroll
  for (int j = 0; j < kN / 2; ++j) {
    const int k = first_tile + j * 2 + (lane >> 4);
    chunk_at[j] = k < tiling.k_chunks ? chunk_byte_offset(n, k) : 0;
  }
  // An extra last column is all ones: its sums are the bias gradient.
  const int ones_tile = n.operands.db ? tiling.k_chunks - first_tile : -1;
  const uint32_t one = T(1.f).bits;
  const uint32_t ones = lane < 4 ? one | one << 16 : 0;  // column 0 of a tile

  wait_for_earlier_kernels();
  const auto load = [&](int strip, uint32_t stage) {
    int in_image;
    const int image_index = windows.by_strips.split(strip, in_image),
              row = in_image * windows.strip_rows;
    load_tile<T>(windows.image, n.operands.image, image_index,
                 windows.origin[0] + row * windows.step[0], windows.origin[1], tiling.image_tile,
                 stage);
    if constexpr (kFusedOp == FusedOp::pool) {
      load_pooled<T>(n, tiling.second, n.operands.second, image_index, row, 0, dy_tile,
                     stage + layout.dy_at);
    } else {
      load_tile<T>(tiling.second, n.operands.second, image_index, row, 0, dy_tile,
                   stage + layout.dy_at);
    }
    if constexpr (kReluMask)
      load_tile<T>(tiling.second, n.operands.relu_y, image_index, row, 0, dy_tile,
                   stage + layout.relu_y_at);
  };
  const auto mask = [&](uint32_t stage) {
    if constexpr (kReluMask) mask_tile(dy_tile, stage + layout.dy_at, stage + layout.relu_y_at);
  };
  float sums[kM][kN][4] = {};
  const auto compute = [&](int, uint32_t stage) {
    const uint32_t dy = stage + layout.dy_at + warp_m * kM * 32 + (lane >> 3 & 1) * 16 +
                        ((lane & 7) + (lane >> 4) * 8) * dy_tile.pixel;
    const auto fetch = [&](GradientFragments<kM, kN>& to, int step) {
      const uint32_t x = stage + position_at[step * 16 + lane % 16];
#pragma unroll
      for (int i = 0; i < kM; ++i)
        load_transposed(to.a[i], dy + step * 16 * dy_tile.pixel + i * 32);
#pragma unroll
      for (int j = 0; j < kN / 2; ++j) load_transposed(to.b[j], x + chunk_at[j]);
    };
    const auto multiply = [&](GradientFragments<kM, kN>& f) {
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        const bool bias = j == ones_tile;
        const uint32_t b0 = bias ? ones : f.b[j / 2][j % 2 * 2];
        const uint32_t b1 = bias ? ones : f.b[j / 2][j % 2 * 2 + 1];
#pragma unroll
        for (int i = 0; i < kM; ++i) multiply_add<T>(sums[i][j], f.a[i], b0, b1);
      }
    };
    GradientFragments<kM, kN> even, odd;
    fetch(even, 0);
    for (int step = 0; step < steps; step += 2) {
      if (step + 1 < steps) fetch(odd, step + 1);
      multiply(even);
      if (step + 2 < steps) fetch(even, step + 2);
      if (step + 1 < steps) multiply(odd);
    }
  };
  for_strips(n, base, load, mask, compute);

  let_next_kernel_start();
  if (n.operands.adds) return add_sums(n, sums, warp_m * kM * 16 + lane / 4, first_tile, lane);
  float* const tile = reinterpret_cast<float*>(memory);  // all else there has been read
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int j = 0; j < kN; ++j) {
      float* const to = tile + ((warp_m * kM + i) * 16 + lane / 4) * layout.tile_pitch +
                        (warp_n * kN + j) * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(to) = make_float2(sums[i][j][0], sums[i][j][1]);
      *reinterpret_cast<float2*>(to + 8 * layout.tile_pitch) =
          make_float2(sums[i][j][2], sums[i][j][3]);
    }
  }
  __syncthreads();
  finish_blocks(n, tile, tiling.warps_m * kM * 16, tiling.warps_n * kN * 8);
#endif
}

template <typename T, FusedOp kFusedOp>
void start(const Gpu& gpu, const DirectConvParams& n, int shape) {
  switch (shape) {
    case 0:
      return launch_direct_conv(gpu, direct_conv_wgrad<T, kFusedOp, 2, 4>, n);
    case 1:
      return launch_direct_conv(gpu, direct_conv_wgrad<T, kFusedOp, 4, 4>, n);
    default:
      return launch_direct_conv(gpu, direct_conv_wgrad<T, kFusedOp, 2, 8>, n);
  }
}

}  // namespace

void start_direct_conv_wgrad(const Gpu& gpu, const DirectConvParams& n, DType dtype, int shape) {
  const auto of_type = [&]<typename T>() {
    if (n.pool.extent[0] > 0) {
      start<T, FusedOp::pool>(gpu, n, shape);
    } else if (n.operands.relu_y) {
      start<T, FusedOp::relu>(gpu, n, shape);
    } else {
      start<T, FusedOp::none>(gpu, n, shape);
    }
  };
  if (dtype == DType::f16) {
    of_type.template operator()<Half>();
  } else {
    of_type.template operator()<BFloat16>();
  }
}

}  // namespace crema

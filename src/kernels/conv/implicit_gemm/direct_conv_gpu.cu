// fprop and dgrad of the direct convolution: rows are positions, columns are outputs (or x's
// channels), the reduction runs over chunks of 8 channels of each tap.
#include "kernels/conv/implicit_gemm/direct_conv.cuh"
#include "kernels/conv/implicit_gemm/direct_conv_launch.cuh"
#include "kernels/conv/implicit_gemm/direct_conv_pool.cuh"

namespace crema {
namespace {

// Offsets of the chunks of k in the image and, for dgrad, in the weights.
template <bool kDgrad>
__device__ void fill_tables(const DirectConvParams& n, int* image_at, int* weights_at, int count) {
  const DirectConvTiling& tiling = n.tiling;
  for (int k = static_cast<int>(threadIdx.x); k < count; k += static_cast<int>(blockDim.x)) {
    const bool there = k < tiling.k_chunks;
    image_at[k] = there ? chunk_byte_offset(n, k) : 0;
    if constexpr (kDgrad) {
      // The last is followed by a chunk of zeros, 8 outputs at tap 0.
      int chunk = tiling.image_tile.chunks, tap = 0;
      if (there) tap = tiling.image_tile.by_chunks.split(k, chunk);
      weights_at[k] = chunk * 8 * tiling.second_tile.row + tap * tiling.second_tile.pixel;
    }
  }
}

template <int kM, int kN>
struct DirectConvFragments {
  uint32_t a[kM][4], b[kN / 2][4];
};

// Reduces the sums of a group of warps, one for each slice, into those of the first, in order.
template <int kM, int kN>
__device__ void add_slices(const DirectConvParams& n, unsigned char* memory, int group, int slice,
                           float (&sums)[kM][kN][4]) {
  constexpr int kQuads = kM * kN;  // per lane
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float4* const mine = reinterpret_cast<float4*>(memory + n.layout.slices_at) +
                       group * (n.tiling.slices - 1) * kQuads * 32 + lane;
  const auto wait = [&] {
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "r"(n.tiling.slices * 32) : "memory");
  };
  if (slice > 0) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const float(&from)[4] = sums[i / kN][i % kN];
      mine[((slice - 1) * kQuads + i) * 32] = make_float4(from[0], from[1], from[2], from[3]);
    }
  }
  wait();
  for (int other = 1; slice == 0 && other < n.tiling.slices; ++other) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const float4 more = mine[((other - 1) * kQuads + i) * 32];
      float(&to)[4] = sums[i / kN][i % kN];
      to[0] += more.x, to[1] += more.y, to[2] += more.z, to[3] += more.w;
    }
  }
  wait();  // only then may the next tile reuse the memory
}

template <typename T, bool kDgrad, FusedOp kFusedOp, int kM, int kN>
__global__ void __launch_bounds__(256, 2) direct_conv(DirectConvParams n) {
#if __CUDA_ARCH__ >= 800
  constexpr bool kReluMask = kFusedOp == FusedOp::relu,
                 kPools = !kDgrad && kFusedOp == FusedOp::pool;
  const DirectConvWindows& windows = n.windows;
  const DirectConvTiling& tiling = n.tiling;
  const DirectConvTile& w_tile = tiling.second_tile;
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t base = shared_address(memory);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp % tiling.warps_m, group = warp % (tiling.warps_m * tiling.warps_n);
  const int warp_n = group / tiling.warps_m, slice = warp / (tiling.warps_m * tiling.warps_n);
  const int steps = (tiling.k_chunks + 1) / 2,
            steps_each = (steps + tiling.slices - 1) / tiling.slices;
  const int first_step = slice * steps_each, end_step = min(steps, first_step + steps_each);

  if (!kDgrad && tiling.k_chunks % 2 == 1) {
    for (int row = static_cast<int>(threadIdx.x); row < w_tile.rows;
         row += static_cast<int>(blockDim.x))
      store_zeros(base + n.layout.w_at + row * w_tile.row + tiling.k_chunks * 16);
  }
  int* const image_at = reinterpret_cast<int*>(memory);
  int* const weights_at = image_at + steps * 2;
  fill_tables<kDgrad>(n, image_at, weights_at, steps * 2);
  const int first_column = kDgrad ? 0 : static_cast<int>(blockIdx.y) * tiling.columns_per_block;
  wait_for_earlier_kernels();
  load_tile<T>(tiling.second, n.operands.second, 0, first_column, 0, w_tile, base + n.layout.w_at);

  // This lane's offset relative to a step's first or second chunk.
  const uint32_t weights = base + n.layout.w_at +
                           (kDgrad ? (lane & 7) * w_tile.row + (warp_n * kN + (lane >> 4)) * 16
                                   : (warp_n * kN * 8 + (lane & 7) + (lane >> 4) * 8) * w_tile.row +
                                         (lane >> 3 & 1) * 16);
  const int pair = kDgrad ? 32 : 16 * w_tile.row;  // from one pair of column tiles to the next

  Random random;
  const bool drops = kPools && n.operands.dropout.threshold > 0;
  if (drops) random = n.operands.dropout.random.get();
  const auto drawn = [&](uint32_t stage) { return memory + (stage - base) + n.layout.dropout_at; };
  const auto load = [&](int strip, uint32_t stage) {
    int in_image;
    const int image_index = windows.by_strips.split(strip, in_image);
    const int row = windows.origin[0] + in_image * windows.strip_rows * windows.step[0];
    if constexpr (kDgrad && kFusedOp == FusedOp::pool) {
      load_pooled<T>(n, windows.image, n.operands.image, image_index, row, windows.origin[1],
                     tiling.image_tile, stage);
    } else {
      load_tile<T>(windows.image, n.operands.image, image_index, row, windows.origin[1],
                   tiling.image_tile, stage);
    }
    if constexpr (kReluMask)
      load_tile<T>(windows.image, n.operands.relu_y, image_index, row, windows.origin[1],
                   tiling.image_tile, stage + n.layout.relu_y_at);
    if (drops) {  // while the copies are in flight
      const int pool_windows = windows.strip_rows / 2 * n.pool.extent[1];
      draw_dropout(n, random, image_index, in_image * pool_windows, pool_windows, drawn(stage));
    }
  };
  const auto mask = [&](uint32_t stage) {
    if constexpr (kReluMask) mask_tile(tiling.image_tile, stage, stage + n.layout.relu_y_at);
  };
  const auto compute = [&](int strip, uint32_t stage) {
    int in_image;
    const int image_index = windows.by_strips.split(strip, in_image);
    const int first = in_image * windows.strip_rows * windows.positions[1];
    const int count = min(windows.strip_rows * windows.positions[1],
                          windows.positions[0] * windows.positions[1] - first);
    T* const out =
        static_cast<T*>(n.operands.out) +
        (static_cast<int64_t>(image_index) * windows.positions[0] * windows.positions[1] + first) *
            tiling.columns;
    for (int tile = warp_m * kM; tile * 16 < count; tile += tiling.warps_m * kM) {
      uint32_t positions[kM];
#pragma unroll
      for (int i = 0; i < kM; ++i) {
        positions[i] = stage + (kPools ? pooled_byte_offset(n, tile * 4 + lane % 8, i, lane / 8 % 2)
                                       : window_byte_offset(n, (tile + i) * 16 + lane % 16));
      }
      float sums[kM][kN][4] = {};
      const auto fetch = [&](DirectConvFragments<kM, kN>& to, int step) {
        const int at = image_at[step * 2 + (lane >> 4)];
        const uint32_t from =
            weights + (kDgrad ? weights_at[step * 2 + (lane >> 3 & 1)] : step * 32);
#pragma unroll
        for (int i = 0; i < kM; ++i) load_matrices(to.a[i], positions[i] + at);
#pragma unroll
        for (int j = 0; j < kN / 2; ++j) {
          if constexpr (kDgrad) {
            load_transposed(to.b[j], from + j * pair);
          } else {
            load_matrices(to.b[j], from + j * pair);
          }
        }
      };
      const auto multiply = [&](const DirectConvFragments<kM, kN>& f) {
#pragma unroll
        for (int i = 0; i < kM; ++i) {
#pragma unroll
          for (int j = 0; j < kN; ++j)
            multiply_add<T>(sums[i][j], f.a[i], f.b[j / 2][j % 2 * 2], f.b[j / 2][j % 2 * 2 + 1]);
        }
      };
      DirectConvFragments<kM, kN> even, odd;
      fetch(even, first_step);
      for (int step = first_step; step < end_step; step += 2) {
        if (step + 1 < end_step) fetch(odd, step + 1);
        multiply(even);
        if (step + 2 < end_step) fetch(even, step + 2);
        if (step + 1 < end_step) multiply(odd);
      }
      if (tiling.slices > 1) {
        add_slices(n, memory, group, slice, sums);
        if (slice > 0) continue;
      }
      if (strip + static_cast<int>(gridDim.x) >= windows.strip_count) let_next_kernel_start();
      if constexpr (kPools) {
        store_pooled<T>(n, sums, image_index, first / 4 + tile * 4, count / 4 - tile * 4,
                        first_column + warp_n * kN * 8, drawn(stage) + tile * 4 * n.pool.quads);
        continue;
      }
      const T* const bias = static_cast<const T*>(n.operands.bias);
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        const int column = first_column + (warp_n * kN + j) * 8 + lane % 4 * 2;
        const bool inside = column < tiling.columns;
        const float b0 = !kDgrad && bias && inside ? static_cast<float>(bias[column]) : 0.f;
        const float b1 = !kDgrad && bias && inside ? static_cast<float>(bias[column + 1]) : 0.f;
#pragma unroll
        for (int i = 0; i < kM; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int position = (tile + i) * 16 + half * 8 + lane / 4;
            float first_sum = sums[i][j][half * 2] + b0, second = sums[i][j][half * 2 + 1] + b1;
            if (!kDgrad && n.operands.relu) {
              first_sum = first_sum <= 0 ? 0 : first_sum;  // a NaN stays
              second = second <= 0 ? 0 : second;
            }
            const T values[2] = {first_sum * (kDgrad ? n.operands.gradient_factor : 1.f),
                                 second * (kDgrad ? n.operands.gradient_factor : 1.f)};
            if (inside && position < count)
              *reinterpret_cast<uint32_t*>(out + static_cast<int64_t>(position) * tiling.columns +
                                           column) =
                  values[0].bits | static_cast<uint32_t>(values[1].bits) << 16;
          }
        }
      }
    }
  };
  for_strips(n, base, load, mask, compute);
#endif
}

template <typename T, bool kDgrad, FusedOp kFusedOp>
void start(const Gpu& gpu, const DirectConvParams& n, int shape) {
  switch (shape) {
    case 0:
      // Pool windows need two rows of tiles.
      if constexpr (kDgrad || kFusedOp != FusedOp::pool)
        return launch_direct_conv(gpu, direct_conv<T, kDgrad, kFusedOp, 1, 4>, n);
      return;
    case 1:
      return launch_direct_conv(gpu, direct_conv<T, kDgrad, kFusedOp, 2, 4>, n);
    default:
      return launch_direct_conv(gpu, direct_conv<T, kDgrad, kFusedOp, 2, 8>, n);
  }
}

template <typename T>
void start(const Gpu& gpu, const DirectConvParams& n, bool dgrad, int shape) {
  if (!dgrad) {
    return n.pool.extent[0] > 0 ? start<T, false, FusedOp::pool>(gpu, n, shape)
                                : start<T, false, FusedOp::none>(gpu, n, shape);
  }
  if (n.pool.extent[0] > 0) return start<T, true, FusedOp::pool>(gpu, n, shape);
  return n.operands.relu_y ? start<T, true, FusedOp::relu>(gpu, n, shape)
                           : start<T, true, FusedOp::none>(gpu, n, shape);
}

}  // namespace

void start_direct_conv(const Gpu& gpu, const DirectConvParams& n, DType dtype, bool dgrad,
                       int shape) {
  if (dtype == DType::f16) {
    start<Half>(gpu, n, dgrad, shape);
  } else {
    start<BFloat16>(gpu, n, dgrad, shape);
  }
}

}  // namespace crema

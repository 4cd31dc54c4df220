// fprop and dgrad of the direct convolution: rows are positions, columns are outputs (or x's
// channels), the reduction runs over chunks of 8 channels of each tap.
#include "kernels/conv/implicit_gemm/direct_conv.cuh"
#include "kernels/conv/implicit_gemm/direct_conv_launch.cuh"
#include "kernels/conv/implicit_gemm/direct_conv_pool.cuh"

namespace crema {
namespace {

// Offsets of the chunks in the image and, for dgrad, in the weights.
template <bool kData>
__device__ void fill_tables(const DirectConvParams& n, int* image_at, int* weights_at, int count) {
  for (int entry = static_cast<int>(threadIdx.x); entry < count;
       entry += static_cast<int>(blockDim.x)) {
    const bool there = entry < n.entries;
    image_at[entry] = there ? window_entry(n, entry) : 0;
    if constexpr (kData) {
      // The last is followed by a chunk of zeros, 8 outputs at tap 0.
      int chunk = n.image_tile.chunks, tap = 0;
      if (there) tap = n.image_tile.by_chunks.split(entry, chunk);
      weights_at[entry] = chunk * 8 * n.other_tile.row + tap * n.other_tile.pixel;
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
  float4* const mine =
      reinterpret_cast<float4*>(memory + n.slices_at) + group * (n.slices - 1) * kQuads * 32 + lane;
  const auto wait = [&] {
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "r"(n.slices * 32) : "memory");
  };
  if (slice > 0) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const float(&from)[4] = sums[i / kN][i % kN];
      mine[((slice - 1) * kQuads + i) * 32] = make_float4(from[0], from[1], from[2], from[3]);
    }
  }
  wait();
  for (int other = 1; slice == 0 && other < n.slices; ++other) {
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const float4 more = mine[((other - 1) * kQuads + i) * 32];
      float(&to)[4] = sums[i / kN][i % kN];
      to[0] += more.x, to[1] += more.y, to[2] += more.z, to[3] += more.w;
    }
  }
  wait();  // only then may the next tile reuse the memory
}

template <typename T, bool kData, FusedOp kFusedOp, int kM, int kN>
__global__ void __launch_bounds__(256, 2) direct_conv(DirectConvParams n) {
#if __CUDA_ARCH__ >= 800
  constexpr bool kSign = kFusedOp == FusedOp::relu, kCells = !kData && kFusedOp == FusedOp::pool;
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t base = shared_address(memory);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp % n.warps_m, group = warp % (n.warps_m * n.warps_n);
  const int warp_n = group / n.warps_m, slice = warp / (n.warps_m * n.warps_n);
  const int steps = (n.entries + 1) / 2, steps_each = (steps + n.slices - 1) / n.slices;
  const int first_step = slice * steps_each, end_step = min(steps, first_step + steps_each);

  if (!kData && n.entries % 2 == 1) {
    for (int row = static_cast<int>(threadIdx.x); row < n.other_tile.rows;
         row += static_cast<int>(blockDim.x))
      store_zeros(base + n.other_tile.at + row * n.other_tile.row + n.entries * 16);
  }
  int* const image_at = reinterpret_cast<int*>(memory + n.tables);
  int* const weights_at = image_at + steps * 2;
  fill_tables<kData>(n, image_at, weights_at, steps * 2);
  const int first_column = kData ? 0 : static_cast<int>(blockIdx.y) * n.columns_each;
  wait_for_earlier_kernels();
  load_tile<T>(n.other, n.other.data, 0, first_column, 0, n.other_tile, base + n.other_tile.at);

  // This lane's offset relative to a step's first or second chunk.
  const uint32_t weights =
      base + n.other_tile.at +
      (kData ? (lane & 7) * n.other_tile.row + (warp_n * kN + (lane >> 4)) * 16
             : (warp_n * kN * 8 + (lane & 7) + (lane >> 4) * 8) * n.other_tile.row +
                   (lane >> 3 & 1) * 16);
  const int pair = kData ? 32 : 16 * n.other_tile.row;  // from one pair of column tiles to the next

  Random random;
  const bool drops = kCells && n.pool.dropout.threshold > 0;
  if (drops) random = n.pool.dropout.random.get();
  const auto drawn = [&](uint32_t stage) { return memory + (stage - base) + n.pool.rng_at; };
  const auto load = [&](int unit, uint32_t stage) {
    int strip;
    const int number = n.by_strips.split(unit, strip);
    const int row = n.origin[0] + strip * n.strip * n.step[0];
    if constexpr (kData && kFusedOp == FusedOp::pool) {
      load_pooled<T>(n, n.image, number, row, n.origin[1], n.image_tile, stage);
    } else {
      load_tile<T>(n.image, n.image.data, number, row, n.origin[1], n.image_tile, stage);
    }
    if constexpr (kSign)
      load_tile<T>(n.image, n.sign, number, row, n.origin[1], n.image_tile, stage + n.sign_at);
    if (drops) {  // while the copies are in flight
      const int cells = n.strip / 2 * n.pool.cells[1];
      draw_cells(n.pool, random, number, strip * cells, cells, drawn(stage));
    }
  };
  const auto mask = [&](uint32_t stage) {
    if constexpr (kSign) mask_tile(n.image_tile, stage, stage + n.sign_at);
  };
  const auto compute = [&](int unit, uint32_t stage) {
    int strip;
    const int number = n.by_strips.split(unit, strip);
    const int first = strip * n.strip * n.positions[1];
    const int count = min(n.strip * n.positions[1], n.positions[0] * n.positions[1] - first);
    T* const out =
        static_cast<T*>(n.out) +
        (static_cast<int64_t>(number) * n.positions[0] * n.positions[1] + first) * n.columns;
    for (int tile = warp_m * kM; tile * 16 < count; tile += n.warps_m * kM) {
      uint32_t positions[kM];
#pragma unroll
      for (int i = 0; i < kM; ++i) {
        positions[i] = stage + (kCells ? offset_in_cell(n, tile * 4 + lane % 8, i, lane / 8 % 2)
                                       : window_position(n, (tile + i) * 16 + lane % 16));
      }
      float sums[kM][kN][4] = {};
      const auto fetch = [&](DirectConvFragments<kM, kN>& to, int step) {
        const int at = image_at[step * 2 + (lane >> 4)];
        const uint32_t w = weights + (kData ? weights_at[step * 2 + (lane >> 3 & 1)] : step * 32);
#pragma unroll
        for (int i = 0; i < kM; ++i) load_matrices(to.a[i], positions[i] + at);
#pragma unroll
        for (int j = 0; j < kN / 2; ++j) {
          if constexpr (kData) {
            load_transposed(to.b[j], w + j * pair);
          } else {
            load_matrices(to.b[j], w + j * pair);
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
      if (n.slices > 1) {
        add_slices(n, memory, group, slice, sums);
        if (slice > 0) continue;
      }
      if (unit + static_cast<int>(gridDim.x) >= n.units) let_next_kernel_start();
      if constexpr (kCells) {
        store_cells<T>(n, sums, number, first / 4 + tile * 4, count / 4 - tile * 4,
                       first_column + warp_n * kN * 8, drawn(stage) + tile * 4 * n.pool.quads);
        continue;
      }
      const T* const bias = static_cast<const T*>(n.bias);
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        const int column = first_column + (warp_n * kN + j) * 8 + lane % 4 * 2;
        const bool inside = column < n.columns;
        const float b0 = !kData && bias && inside ? static_cast<float>(bias[column]) : 0.f;
        const float b1 = !kData && bias && inside ? static_cast<float>(bias[column + 1]) : 0.f;
#pragma unroll
        for (int i = 0; i < kM; ++i) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int position = (tile + i) * 16 + half * 8 + lane / 4;
            float first_sum = sums[i][j][half * 2] + b0, second = sums[i][j][half * 2 + 1] + b1;
            if (!kData && n.relu) {
              first_sum = first_sum > 0 ? first_sum : 0;
              second = second > 0 ? second : 0;
            }
            const T values[2] = {first_sum * (kData ? n.factor : 1.f),
                                 second * (kData ? n.factor : 1.f)};
            if (inside && position < count)
              *reinterpret_cast<uint32_t*>(out + static_cast<int64_t>(position) * n.columns +
                                           column) =
                  values[0].bits | static_cast<uint32_t>(values[1].bits) << 16;
          }
        }
      }
    }
  };
  for_units(n, base, load, mask, compute);
#endif
}

template <typename T, bool kData, FusedOp kFusedOp>
void start(const Gpu& gpu, const DirectConvParams& n, int shape, const WindowGrid& grid) {
  switch (shape) {
    case 0:
      // Cells need two rows of tiles.
      if constexpr (kData || kFusedOp != FusedOp::pool)
        return launch_direct_conv(gpu, direct_conv<T, kData, kFusedOp, 1, 4>, n, grid);
      return;
    case 1:
      return launch_direct_conv(gpu, direct_conv<T, kData, kFusedOp, 2, 4>, n, grid);
    default:
      return launch_direct_conv(gpu, direct_conv<T, kData, kFusedOp, 2, 8>, n, grid);
  }
}

template <typename T>
void start(const Gpu& gpu, const DirectConvParams& n, bool data, int shape,
           const WindowGrid& grid) {
  if (!data) {
    return n.pool.cells[0] > 0 ? start<T, false, FusedOp::pool>(gpu, n, shape, grid)
                               : start<T, false, FusedOp::none>(gpu, n, shape, grid);
  }
  if (n.pool.cells[0] > 0) return start<T, true, FusedOp::pool>(gpu, n, shape, grid);
  return n.sign ? start<T, true, FusedOp::relu>(gpu, n, shape, grid)
                : start<T, true, FusedOp::none>(gpu, n, shape, grid);
}

}  // namespace

void start_direct_conv(const Gpu& gpu, const DirectConvParams& n, DType dtype, bool data, int shape,
                       const WindowGrid& grid) {
  if (dtype == DType::f16) {
    start<Half>(gpu, n, data, shape, grid);
  } else {
    start<BFloat16>(gpu, n, data, shape, grid);
  }
}

}  // namespace crema

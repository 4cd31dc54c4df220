// The kernel of int8_gemm.h: as that of tf32_gemm.h, but with matrix loads (ldmatrix), whose rows of 16
// bytes are what products of bytes take.
#include "base/ceil_div.h"
#include "device/programmatic_launch.h"
#include "kernels/conv/implicit_gemm/gemm_loads.cuh"
#include "kernels/conv/implicit_gemm/int8_gemm.h"
#include "kernels/conv/quantized/bytes.h"
#include "kernels/core/pack.h"

namespace crema {
namespace {

constexpr int kInt8Depth = 64, kInt8Stages = 4;
constexpr int kInt8Shapes = 4;
constexpr TileExtent kInt8Tiles[kInt8Shapes] = {{128, 128}, {128, 64}, {64, 64}, {64, 32}};

// What happens to a sum.
struct Int8Epilogue {
  const float* factors = nullptr;
  float relu_slope = 0;
  int plane = 0;            // row-major: positions of an image; 0: channels-last
  DType dtype{};            // bias, `added` and y have it
  bool in_vectors = false;  // channels-last, and a group's outputs are a multiple of 8
  int8_t* bytes = nullptr;  // null: none
  ByteRounding rounding;
};

struct Int8Params {
  ImplicitGemmParams product;
  Int8Epilogue epilogue;
};

// A block's sums, in the registers of its threads (PTX ISA: mma.m16n8k32, .s8 and .u8).
template <typename Tile, bool kSigned>
struct Int8Sums {
  static constexpr int kM = Tile::m / Tile::warps_m / 16, kN = Tile::n / Tile::warps_n / 16;
  int sums[kM][kN * 2][4] = {};

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int first_row() {
    return static_cast<int>(threadIdx.x) / 32 % Tile::warps_m * kM * 16;
  }
  __device__ static int first_column() {
    return static_cast<int>(threadIdx.x) / 32 / Tile::warps_m * kN * 16;
  }
  // a, b: addresses of the tiles in shared memory.
  template <typename A, typename B>
  __device__ void add(uint32_t a, uint32_t b) {
    const int row = first_row() + lane() % 16, row_k = lane() / 16 * 16;
    const int column = first_column() + lane() / 16 * 8 + lane() % 8,
              column_k = lane() / 8 % 2 * 16;
#pragma unroll
    for (int k = 0; k < kInt8Depth; k += 32) {
      uint32_t left[kM][4], right[kN][4];
#pragma unroll
      for (int i = 0; i < kM; ++i)
        load_matrices(left[i], a + (row + i * 16) * A::pitch + k + row_k);
#pragma unroll
      for (int j = 0; j < kN; ++j)
        load_matrices(right[j], b + (column + j * 16) * B::pitch + k + column_k);
#pragma unroll
      for (int i = 0; i < kM; ++i) {
#pragma unroll
        for (int j = 0; j < kN; ++j) {
          multiply_add_bytes<kSigned>(sums[i][2 * j], left[i], right[j][0], right[j][1]);
          multiply_add_bytes<kSigned>(sums[i][2 * j + 1], left[i], right[j][2], right[j][3]);
        }
      }
    }
  }
  // Writes them to a matrix with rows of `pitch`.
  __device__ void store(int* to, int pitch) const {
    const int row = first_row() + lane() / 4, column = first_column() + lane() % 4 * 2;
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int j = 0; j < kN * 2; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<int2*>(to + (row + i * 16 + half * 8) * pitch + column + j * 8) =
              make_int2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
      }
    }
  }
};

// The sums of a block's tile in shared memory. Rows are padded so that a warp's writes have no bank conflicts.
template <typename Tile>
struct Int8Results {
  static constexpr int pitch = Tile::n + 8, bytes = Tile::m * pitch * 4;
};

// Finishes kCount adjacent outputs, of several positions: more than one in channels-last order only.
template <typename T, int kCount>
struct Int8Finish {
  using Values = Pack<T, kCount>;
  const Int8Params& n;
  int output;
  Pack<float, kCount> factors;
  Values bias{};

  __device__ Int8Finish(const Int8Params& params, int first_output)
      : n(params), output(first_output) {
    factors = *reinterpret_cast<const Pack<float, kCount>*>(n.epilogue.factors + output);
    if (const void* from = n.product.operands.bias)
      bias = *reinterpret_cast<const Values*>(static_cast<const T*>(from) + output);
  }
  // Where the outputs of the position begin.
  __device__ int64_t place(int row) const {
    const ImplicitGemmGeometry& g = n.product.geometry;
    if (n.epilogue.plane == 0) return static_cast<int64_t>(row) * g.out_pixel + output;
    int point;
    const int image = g.by_plane.split(row, point);
    return (static_cast<int64_t>(image) * g.out_pixel + output) * n.epilogue.plane + point;
  }
  __device__ Values added(int64_t at) const {
    return *reinterpret_cast<const Values*>(static_cast<const T*>(n.product.operands.added) + at);
  }
  __device__ void store(int64_t at, const int* sums, const Values& added) const {
    const ImplicitGemmOperands& with = n.product.operands;
    const auto totals = *reinterpret_cast<const Pack<int, kCount>*>(sums);
    Values results;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      float value = static_cast<float>(totals.v[i]) * factors.v[i];
      if (with.bias) value += static_cast<float>(bias.v[i]);
      if (with.added) value += static_cast<float>(added.v[i]);
      if (with.relu && value <= 0) value *= n.epilogue.relu_slope;  // a NaN stays
      results.v[i] = T(value);
    }
    if (with.out) *reinterpret_cast<Values*>(static_cast<T*>(with.out) + at) = results;
    if (n.epilogue.bytes == nullptr) return;
    Pack<int8_t, kCount> bytes;
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      bytes.v[i] = n.epilogue.rounding(static_cast<float>(results.v[i]));
    *reinterpret_cast<Pack<int8_t, kCount>*>(n.epilogue.bytes + at) = bytes;
  }
};

// Writes a tile's results, of type T, from its sums in shared memory.
template <typename T, typename Tile>
__device__ void store_tile_of(const Int8Params& n, int group, int first_row, int first_column,
                              const int* tile) {
  constexpr int kPitch = Int8Results<Tile>::pitch, kVector = 8, kVectors = Tile::n / kVector;
  const ImplicitGemmGeometry& g = n.product.geometry;
  const int thread = static_cast<int>(threadIdx.x),
            first_output = group * g.out_group + first_column;
  if (n.epilogue.in_vectors) {
    // Neighboring threads have neighboring vectors; each keeps its columns.
    constexpr int kStep = Tile::threads / kVectors, kRows = Tile::m / kStep,
                  kAhead = 4 < kRows ? 4 : kRows;
    static_assert(Tile::threads % kVectors == 0 && Tile::m % kStep == 0 && kRows % kAhead == 0);
    const int column = thread % kVectors * kVector, row = thread / kVectors;
    if (first_column + column >= g.columns) return;
    const Int8Finish<T, kVector> finish(n, first_output + column);
#pragma unroll
    for (int i = 0; i < kRows; i += kAhead) {
      Pack<T, kVector> added[kAhead] = {};
      if (n.product.operands.added) {
#pragma unroll
        for (int j = 0; j < kAhead; ++j) {
          const int at = row + (i + j) * kStep;
          if (first_row + at < g.rows) added[j] = finish.added(finish.place(first_row + at));
        }
      }
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        const int at = row + (i + j) * kStep;
        if (first_row + at < g.rows)
          finish.store(finish.place(first_row + at), tile + at * kPitch + column, added[j]);
      }
    }
    return;
  }
  const bool points_first = n.epilogue.plane > 0;
  for (int i = thread; i < Tile::m * Tile::n; i += Tile::threads) {
    const int row = points_first ? i % Tile::m : i / Tile::n,
              column = points_first ? i / Tile::m : i % Tile::n;
    if (first_row + row >= g.rows || first_column + column >= g.columns) continue;
    const Int8Finish<T, 1> finish(n, first_output + column);
    const int64_t at = finish.place(first_row + row);
    finish.store(at, tile + row * kPitch + column,
                 n.product.operands.added ? finish.added(at) : Pack<T, 1>{});
  }
}

template <typename Tile>
__device__ void store_tile(const Int8Params& n, int group, int first_row, int first_column,
                           const int* tile) {
  switch (n.epilogue.dtype) {
    case DType::f16:
      return store_tile_of<Half, Tile>(n, group, first_row, first_column, tile);
    case DType::bf16:
      return store_tile_of<BFloat16, Tile>(n, group, first_row, first_column, tile);
    default:
      return store_tile_of<float, Tile>(n, group, first_row, first_column, tile);
  }
}

template <typename Tile, bool kSigned>
__global__ void __launch_bounds__(Tile::threads) int8_gemm(Int8Params params) {
#if __CUDA_ARCH__ >= 800  // older cards lack these instructions: see has_async_mma()
  const Int8Params all = params;
  const ImplicitGemmParams& n = all.product;
  using Layout = GemmLayout<int8_t, kInt8Depth, Tile, ConvCall::fprop>;
  extern __shared__ __align__(128) unsigned char int8_tiles[];
  const uint32_t base = shared_address(int8_tiles);
  const int group = static_cast<int>(blockIdx.z) / n.split.pieces;
  const int piece = static_cast<int>(blockIdx.z) % n.split.pieces;
  const int first_row = static_cast<int>(blockIdx.x) * Tile::m,
            first_column = static_cast<int>(blockIdx.y) * Tile::n;
  const int all_steps = (n.geometry.depth + kInt8Depth - 1) / kInt8Depth;
  const int begin = piece * n.split.steps_each,
            steps = max(0, min(n.split.steps_each, all_steps - begin));
  const GemmLoads<Layout, Tile, ConvCall::fprop> load(n, group, first_row, first_column);
  wait_for_earlier_kernels();
  Int8Sums<Tile, kSigned> sums;
  // Steps below zero only load.
#pragma unroll 1
  for (int step = 1 - kInt8Stages; step < steps; ++step) {
    if (step >= 0) {
      wait_for_copies<kInt8Stages - 2>();
      __syncthreads();
    }
    const int next = step + kInt8Stages - 1;
    if (next < steps) {
      const uint32_t to = base + next % kInt8Stages * Layout::stage;
      load((begin + next) * kInt8Depth, to, to + Layout::A::elements);
    }
    end_copies();
    if (step >= 0) {
      const uint32_t from = base + step % kInt8Stages * Layout::stage;
      sums.template add<typename Layout::A, typename Layout::B>(from, from + Layout::A::elements);
    }
  }
  let_next_kernel_start();
  constexpr int kPitch = Int8Results<Tile>::pitch;
  int* const results = reinterpret_cast<int*>(int8_tiles);
  __syncthreads();  // the tiles have been read
  if (n.split.pieces == 1) {
    sums.store(results, kPitch);
    __syncthreads();
    return store_tile<Tile>(all, group, first_row, first_column, results);
  }
  // The last block of a tile adds the sums of all its pieces.
  const int tile = static_cast<int>((group * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
  constexpr int kResults = Tile::m * Tile::n;
  int* const parts = reinterpret_cast<int*>(n.operands.partial_sums) +
                     static_cast<int64_t>(tile) * n.split.pieces * kResults;
  sums.store(parts + piece * kResults, Tile::n);
  if (!last_of(n.operands.counters + tile, n.split.pieces)) return;
  for (int i = static_cast<int>(threadIdx.x) * 4; i < kResults; i += Tile::threads * 4) {
    int4 total = {};
    for (int other = 0; other < n.split.pieces; ++other) {
      const int4 part = __ldcg(reinterpret_cast<const int4*>(parts + other * kResults + i));
      total = {total.x + part.x, total.y + part.y, total.z + part.z, total.w + part.w};
    }
    *reinterpret_cast<int4*>(results + i / Tile::n * kPitch + i % Tile::n) = total;
  }
  __syncthreads();
  store_tile<Tile>(all, group, first_row, first_column, results);
#endif
}

template <typename Tile, bool kSigned>
void launch_int8_gemm(const Gpu& gpu, const Int8Params& n) {
  const auto kernel = int8_gemm<Tile, kSigned>;
  constexpr int kBytes =
      std::max(GemmLayout<int8_t, kInt8Depth, Tile, ConvCall::fprop>::stage * kInt8Stages,
               Int8Results<Tile>::bytes);
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  check_cuda(allowed, "reserving shared memory");
  const ImplicitGemmGeometry& g = n.product.geometry;
  const dim3 blocks(ceil_div(g.rows, Tile::m), ceil_div(g.columns, Tile::n),
                    g.groups * n.product.split.pieces);
  launch_programmatic(gpu, kernel, {blocks, Tile::threads, static_cast<size_t>(kBytes)}, n);
}

template <typename Tile>
void launch_tile(const Gpu& gpu, const Int8Params& n, bool has_sign) {
  if (has_sign) return launch_int8_gemm<Tile, true>(gpu, n);
  launch_int8_gemm<Tile, false>(gpu, n);
}

// The case of bytes whose channels are padded.
ConvCase case_of_bytes(const ConvCase& c) {
  ConvCase bytes = c;
  bytes.dtype = DType::u8;
  bytes.order = Order::channels_last;
  bytes.x_channels = c.groups * Int8Gemm::padded_channels(c);
  return bytes;
}

}  // namespace

int64_t Int8Gemm::padded_channels(const ConvCase& c) {
  const int64_t channels = c.w[1];
  return channels <= 4 ? 4 : channels <= 8 ? 8 : ceil_div<int64_t>(channels, 16) * 16;
}

bool Int8Gemm::supports(const ConvCase& c, std::string& reason) {
  // A group is multiplied by itself, in tiles that one of few channels leaves empty.
  constexpr int64_t kFewest = 8;
  constexpr int64_t kMostTerms = (int64_t{1} << 31) / (255 * 128);
  ConvCase sizes = case_of_bytes(c);
  sizes.relu = {};
  if (c.groups > 1 && (c.w[1] < kFewest || c.w[0] / c.groups < kFewest)) {
    reason = cat("groups of fewer than ", kFewest, " channels");
  } else if (c.w.count() / c.w[0] > kMostTerms) {
    reason = cat("sums of more than ", kMostTerms, " products may not fit into 32 bits");
  } else {
    return fits_products(sizes, reason);
  }
  return false;
}

Int8Gemm::Int8Gemm(Context& context, const ConvCase& c, const Int8Operands& operands)
    : SplitProduct(context, case_of_bytes(c), ConvCall::fprop, kInt8Tiles, kInt8Depth),
      c_(c),
      has_sign_(operands.has_sign),
      factors_(context, {c.w[0]}) {
  from_floats(context, operands.factors.data(), factors_);
}

void Int8Gemm::launch(Context& context, const ProductTensors& t, size_t choice) const {
  const Gpu& gpu = context.gpu();
  const Relu& relu = t.added ? c_.sum_relu : c_.relu;
  Int8Params n{params(gpu, choice),
               {.rounding = ByteRounding(c_.y_bytes.value_or(QuantizedValues{}))}};
  n.product.operands.a = t.x;
  n.product.operands.b = t.w;
  n.product.operands.bias = t.b;
  n.product.operands.added = t.added;
  n.product.operands.out = t.out;
  n.product.operands.relu = relu.on;
  n.epilogue.factors = factors_.data<float>();
  n.epilogue.relu_slope = relu.slope;
  n.epilogue.plane = c_.order == Order::row_major ? static_cast<int>(c_.y.count(2)) : 0;
  n.epilogue.dtype = c_.dtype;
  n.epilogue.in_vectors = n.epilogue.plane == 0 && n.product.geometry.columns % 8 == 0;
  n.epilogue.bytes = t.out_bytes;
  switch (shape(choice)) {
    case 0:
      return launch_tile<GemmTile<128, 128, 4, 2>>(gpu, n, has_sign_);
    case 1:
      return launch_tile<GemmTile<128, 64, 4, 2>>(gpu, n, has_sign_);
    case 2:
      return launch_tile<GemmTile<64, 64, 4, 2>>(gpu, n, has_sign_);
    default:
      return launch_tile<GemmTile<64, 32, 4, 1>>(gpu, n, has_sign_);
  }
}

}  // namespace crema

// A block computes kM x kN results in steps of 32 along the summed axis, through a ring of tiles in
// shared memory. Where there are few blocks the summed axis is cut into pieces.
#include <algorithm>

#include "kernels/gather_product.cuh"
#include "tensor/on.h"

namespace crema {
namespace {

// Leaves this block's sums as part `mine`. In the last of the `count` blocks that call this with
// one counter: sums become those of the parts first, first + step, ...; true.
template <typename Shape, int kM, int kN>
__device__ bool add_pieces(float (&sums)[kM][kN][4], float* parts, int mine, int first, int step,
                           int count, unsigned* counter) {
  constexpr int64_t kPart = Shape::m * Shape::n / 4;  // in float4
  float4* const all = reinterpret_cast<float4*>(parts) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int j = 0; j < kN; ++j) {
      all[mine * kPart + (i * kN + j) * Shape::threads] =
          make_float4(sums[i][j][0], sums[i][j][1], sums[i][j][2], sums[i][j][3]);
    }
  }
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1u) == static_cast<unsigned>(count) - 1;
    if (last) *counter = 0;
  }
  __syncthreads();
  if (!last) return false;
  __threadfence();
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int j = 0; j < kN; ++j) {
#pragma unroll
      for (int k = 0; k < 4; ++k) sums[i][j][k] = 0;
    }
  }
#pragma unroll 4
  for (int part = 0; part < count; ++part) {
    const float4* const from = all + (first + part * step) * kPart;
#pragma unroll
    for (int i = 0; i < kM; ++i) {
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        const float4 more = __ldcg(from + (i * kN + j) * Shape::threads);
        sums[i][j][0] += more.x, sums[i][j][1] += more.y;
        sums[i][j][2] += more.z, sums[i][j][3] += more.w;
      }
    }
  }
  return true;
}

template <typename T, typename Shape, GatherRole kRole, bool kSign>
__global__ void __launch_bounds__(Shape::threads) gather_product(GatherNumbers n) {
#if __CUDA_ARCH__ >= 800  // older cards lack these instructions: see fastest_gpu.cpp
  using Layout = GatherLayout<Shape, kRole, kSign>;
  using A = typename Layout::A;
  using B = typename Layout::B;
  constexpr int kM = Shape::m / Shape::warps_m / 16, kN = Shape::n / Shape::warps_n / 16;
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t base = shared_address(memory);
  const int group = static_cast<int>(blockIdx.z) / n.pieces;
  const int piece = static_cast<int>(blockIdx.z) % n.pieces;
  const int first_row = static_cast<int>(blockIdx.x) * Shape::m;
  const int first_column = static_cast<int>(blockIdx.y) * Shape::n;
  const int all_steps = (n.depth + kGatherDepth - 1) / kGatherDepth;
  const int begin = piece * n.steps_each, steps = min(n.steps_each, all_steps - begin);
  n.a = static_cast<const T*>(n.a) + group * n.a_group;
  n.b = static_cast<const T*>(n.b) + group * n.b_group;
  if (kSign) n.sign = static_cast<const T*>(n.sign) + group * n.a_group;

  GatheredRows<T, A, Shape::threads, kSign> gathered;
  GatheredColumns<T, B, Shape::threads> columns;
  if constexpr (kRole == GatherRole::weights) {
    columns.start(n, first_column);
  } else {
    gathered.start(n, first_row);
  }
  const auto load = [&](int step) {
    const uint32_t to = base + step % kGatherStages * Layout::stage;
    const int depth = (begin + step) * kGatherDepth;
    if constexpr (kRole == GatherRole::weights) {
      load_matrix<T, A, Shape::threads, kSign>(n.a_vector, n.a, n.sign, depth, n.depth, first_row,
                                               n.rows, n.a_pixel, to, to + Layout::sign_at);
      columns.load(n, depth, to + Layout::b_at);
    } else {
      gathered.load(n, depth, to, to + Layout::sign_at);
      if constexpr (kRole == GatherRole::forward) {
        load_matrix<T, B, Shape::threads, false>(n.b_vector, n.b, nullptr, first_column, n.columns,
                                                 depth, n.depth, n.w_output, to + Layout::b_at, 0);
      } else {
        load_turned_weights<T, B, Shape::threads>(n, depth, first_column, to + Layout::b_at);
      }
    }
  };

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp % Shape::warps_m * kM * 16,
            warp_column = warp / Shape::warps_m * kN * 16;
  float sums[kM][kN * 2][4] = {};
#pragma unroll
  for (int step = 0; step < kGatherStages - 1; ++step) {
    if (step < steps) load(step);
    end_copies();
  }
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<kGatherStages - 2>();
    __syncthreads();
    if (step + kGatherStages - 1 < steps) load(step + kGatherStages - 1);
    end_copies();
    const uint32_t from = base + step % kGatherStages * Layout::stage;
#pragma unroll
    for (int depth = 0; depth < kGatherDepth; depth += 16) {
      uint32_t a[kM][4], b[kN][4];
#pragma unroll
      for (int i = 0; i < kM; ++i) {
        load_a<A, Layout::a_transposed>(a[i], from, warp_row + i * 16, depth);
        if constexpr (kSign) {
          uint32_t sign[4];
          load_a<A, Layout::a_transposed>(sign, from + Layout::sign_at, warp_row + i * 16, depth);
#pragma unroll
          for (int k = 0; k < 4; ++k) a[i][k] = where_positive(a[i][k], sign[k]);
        }
      }
#pragma unroll
      for (int j = 0; j < kN; ++j)
        load_b<B, Layout::b_transposed>(b[j], from + Layout::b_at, warp_column + j * 16, depth);
#pragma unroll
      for (int i = 0; i < kM; ++i) {
#pragma unroll
        for (int j = 0; j < kN; ++j) {
          multiply_add<T>(sums[i][2 * j], a[i], b[j][0], b[j][1]);
          multiply_add<T>(sums[i][2 * j + 1], a[i], b[j][2], b[j][3]);
        }
      }
    }
  }

  if (n.pieces > 1) {
    // Pieces add their sums in bundles, and then the bundles: the last block to come does it, in
    // the order of the pieces.
    const int tile = (group * static_cast<int>(gridDim.y) + static_cast<int>(blockIdx.y)) *
                         static_cast<int>(gridDim.x) +
                     static_cast<int>(blockIdx.x);
    const int bundles = (n.pieces + n.bundle - 1) / n.bundle, bundle = piece / n.bundle;
    const int first = bundle * n.bundle, count = min(n.bundle, n.pieces - first);
    unsigned* const counters = n.counters + tile * (bundles + 1);
    float* const parts = n.parts + static_cast<int64_t>(tile) * n.pieces * Shape::m * Shape::n;
    if (!add_pieces<Shape>(sums, parts, piece, first, 1, count, counters + 1 + bundle)) return;
    if (bundles > 1 && !add_pieces<Shape>(sums, parts, first, 0, n.bundle, bundles, counters))
      return;
  }

  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int j = 0; j < kN * 2; ++j) {
      const int row = first_row + warp_row + i * 16 + lane / 4;
      const int column = first_column + warp_column + j * 8 + lane % 4 * 2;
      store_pair<T, kRole>(n, group, row, column, sums[i][j][0], sums[i][j][1]);
      store_pair<T, kRole>(n, group, row + 8, column, sums[i][j][2], sums[i][j][3]);
    }
  }
#endif
}

constexpr int kShapes = 4;
constexpr int kShapeRows[kShapes] = {32, 64, 64, 128}, kShapeColumns[kShapes] = {32, 32, 64, 64};

template <typename Body>
void with_shape(int shape, const Body& body) {
  switch (shape) {
    case 0:
      return body.template operator()<GatherShape<32, 32, 2, 2>>();
    case 1:
      return body.template operator()<GatherShape<64, 32, 4, 1>>();
    case 2:
      return body.template operator()<GatherShape<64, 64, 2, 2>>();
    default:
      return body.template operator()<GatherShape<128, 64, 4, 2>>();
  }
}

template <typename T, typename Shape, GatherRole kRole, bool kSign>
void start(const GatherNumbers& n, cudaStream_t stream) {
  using Layout = GatherLayout<Shape, kRole, kSign>;
  const auto kernel = gather_product<T, Shape, kRole, kSign>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Layout::bytes);
  check_cuda(allowed, "reserving shared memory");
  const dim3 blocks((n.rows + Shape::m - 1) / Shape::m, (n.columns + Shape::n - 1) / Shape::n,
                    n.groups * n.pieces);
  kernel<<<blocks, Shape::threads, Layout::bytes, stream>>>(n);
  check_cuda(cudaGetLastError(), "launching a kernel");
}

int64_t over(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

GatherProduct::GatherProduct(Context& context, const ConvCase& c, GatherRole role, bool with_sign)
    : c_(c), role_(role), with_sign_(with_sign) {
  const GatherNumbers n = gather_numbers(c, role);
  const std::vector<GatherTap> taps = gather_taps(c, role);
  taps_ = Tensor(context, {static_cast<int64_t>(taps.size() * sizeof(GatherTap))}, DType::u8);
  copy_bytes(context, taps_.raw(), Device::gpu, taps.data(), Device::cpu, taps_.bytes());
  rows_ = n.rows;
  columns_ = n.columns + (role == GatherRole::weights);  // the bias's
  depth_ = n.depth;
}

namespace {

// As many pieces in a bundle as there are bundles, where there are more than a few.
int64_t bundle_of(int64_t pieces) {
  int64_t root = 1;
  while (root * root < pieces) ++root;
  return pieces <= 8 ? pieces : root;
}

}  // namespace

std::vector<GatherProduct::Choice> GatherProduct::choices() const {
  std::vector<Choice> all;
  const int64_t steps = over(depth_, kGatherDepth);
  for (int shape = 0; shape < kShapes; ++shape) {
    const int64_t m = kShapeRows[shape], k = kShapeColumns[shape];
    const int64_t tiles = over(rows_, m) * over(columns_, k) * c_.groups;
    int before = 0;
    for (int64_t blocks : {1, 132, 264, 528}) {
      int64_t pieces = std::clamp<int64_t>(blocks / tiles, 1, std::max<int64_t>(1, steps / 2));
      if (tiles * 2 > Gpu::kCounters || tiles * m * k > Gpu::kParts) pieces = 1;
      pieces = std::min(pieces, std::max<int64_t>(1, Gpu::kParts / (tiles * m * k)));
      pieces = over(steps, over(steps, pieces));  // each with a step at least
      if (tiles * (over(pieces, bundle_of(pieces)) + 1) > Gpu::kCounters) continue;
      if (pieces == before) continue;
      before = static_cast<int>(pieces);
      all.push_back({shape, before});
    }
  }
  return all;
}

void GatherProduct::launch(Context& context, const GatherTensors& t, const Choice& choice) const {
  const Gpu& gpu = context.gpu();
  GatherNumbers n = gather_numbers(c_, role_);
  n.pieces = choice.pieces;
  n.steps_each = static_cast<int>(over(over(n.depth, kGatherDepth), choice.pieces));
  n.bundle = static_cast<int>(bundle_of(choice.pieces));
  n.taps = static_cast<const GatherTap*>(taps_.raw());
  n.parts = gpu.parts;
  n.counters = gpu.counters;
  n.a = role_ == GatherRole::forward ? t.x : t.dy;
  n.b = role_ == GatherRole::weights ? t.x : t.w;
  n.sign = t.y;
  n.bias = role_ == GatherRole::forward ? t.b : nullptr;
  n.out = t.out;
  n.relu = role_ == GatherRole::forward && c_.relu;
  n.db = t.db;
  n.accumulate_w = t.accumulate_w;
  n.accumulate_b = t.accumulate_b;
  if (n.db) ++n.columns;
  with_shape(choice.shape, [&]<typename Shape>() {
    const auto of_type = [&]<typename T>() {
      switch (role_) {
        case GatherRole::forward:
          return start<T, Shape, GatherRole::forward, false>(n, gpu.stream);
        case GatherRole::data:
          return n.sign ? start<T, Shape, GatherRole::data, true>(n, gpu.stream)
                        : start<T, Shape, GatherRole::data, false>(n, gpu.stream);
        case GatherRole::weights:
          return n.sign ? start<T, Shape, GatherRole::weights, true>(n, gpu.stream)
                        : start<T, Shape, GatherRole::weights, false>(n, gpu.stream);
      }
    };
    if (c_.dtype == DType::f16) {
      of_type.template operator()<Half>();
    } else {
      of_type.template operator()<BFloat16>();
    }
  });
}

void GatherProduct::run(Context& context, const GatherTensors& tensors) const {
  launch(context, tensors, choice_);
}

std::string GatherProduct::key() const {
  const GatherNumbers n = gather_numbers(c_, role_);
  return cat("gather ", static_cast<int>(role_), with_sign_ ? " sign " : " ", name_of(c_.dtype),
             " ", rows_, "x", columns_, "x", depth_, " groups ", n.groups, " image ", n.height, "x",
             n.width, "x", n.channels, " places ", n.by_plane.divisor, " by ", n.by_row.divisor,
             " kernel ", n.kernel_width, " step ", n.step[0], ",", n.step[1], " tap ", n.tap[0],
             ",", n.tap[1], " vectors ", n.a_vector, ",", n.b_vector);
}

void GatherProduct::tune(Context& context, const GatherTensors& scratch) {
  Tuning& tuning = context.gpu().tuning;
  const std::vector<Choice> all = choices();
  if (const std::optional<std::string> known = tuning.find(key())) {
    for (const Choice& choice : all) {
      if (cat(choice.shape, "/", choice.pieces) == *known) {
        choice_ = choice;
        return;
      }
    }
  }
  // Without timing: the blocks that fill the card, as large as they may be then.
  choice_ = all.front();
  for (const Choice& choice : all) {
    const int64_t blocks = over(rows_, kShapeRows[choice.shape]) *
                           over(columns_, kShapeColumns[choice.shape]) * c_.groups * choice.pieces;
    if (blocks >= 132) choice_ = choice;
  }
  if (tuning.candidates() <= 1 || !scratch.out) return;
  double best = 1e30;
  for (const Choice& choice : all) {
    const double seconds = tuning.time_repeated(context, [&] { launch(context, scratch, choice); });
    if (seconds < best) {
      best = seconds;
      choice_ = choice;
    }
  }
  tuning.remember(key(), cat(choice_.shape, "/", choice_.pieces));
}

}  // namespace crema

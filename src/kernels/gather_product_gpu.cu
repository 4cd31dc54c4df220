// A block computes kM x kN results in steps of 32 along the summed axis, through a ring of tiles in
// shared memory. Where there are few blocks the summed axis is cut into pieces.
#include <algorithm>

#include "device/launch.h"
#include "kernels/gather_product.cuh"
#include "kernels/window_product.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Sums of a block's results over all pieces, and storing them. Blocks of a cluster read each
// other's shared memory and take some rows each; clusters leave their sums in global memory, where
// the last one adds them up. The order is always that of the pieces.
template <typename T, typename Shape, GatherRole kRole, int kM, int kN>
__device__ void finish_pieces(const GatherNumbers& n, const float (&sums)[kM][kN][4], float* tile,
                              int group, int piece, int warp_row, int warp_column) {
  constexpr int kPitch = Shape::n + 4, kQuads = Shape::n / 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  __syncthreads();  // the ring of tiles has been read
#pragma unroll
  for (int i = 0; i < kM; ++i) {
#pragma unroll
    for (int j = 0; j < kN; ++j) {
      float* const to =
          tile + (warp_row + i * 16 + lane / 4) * kPitch + warp_column + j * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(to) = make_float2(sums[i][j][0], sums[i][j][1]);
      *reinterpret_cast<float2*>(to + 8 * kPitch) = make_float2(sums[i][j][2], sums[i][j][3]);
    }
  }
  cluster_barrier();
  const int rank = piece % n.cluster, rows = Shape::m / n.cluster, outer = n.pieces / n.cluster;
  const int at =
      static_cast<int>((blockIdx.z / n.pieces * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) *
          n.cluster +
      rank;  // of these rows among those of all blocks
  float4* const parts =
      reinterpret_cast<float4*>(n.parts) + static_cast<int64_t>(at) * outer * rows * kQuads;
  const auto quad_at = [&](int quad) {
    return (rank * rows + quad / kQuads) * kPitch + quad % kQuads * 4;
  };
  const auto store = [&](int quad, const float4& q) {
    const int row = static_cast<int>(blockIdx.x) * Shape::m + rank * rows + quad / kQuads;
    const int column = static_cast<int>(blockIdx.y) * Shape::n + quad % kQuads * 4;
    store_pair<T, kRole>(n, group, row, column, q.x, q.y);
    store_pair<T, kRole>(n, group, row, column + 2, q.z, q.w);
  };
  for (int quad = static_cast<int>(threadIdx.x); quad < rows * kQuads; quad += Shape::threads) {
    float4 total = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int other = 0; other < n.cluster; ++other)
      add_to(total, *reinterpret_cast<const float4*>(of_cluster(tile, other) + quad_at(quad)));
    if (outer == 1) {
      store(quad, total);
    } else {
      parts[piece / n.cluster * rows * kQuads + quad] = total;
    }
  }
  if (outer > 1 && last_of(n.counters + at, outer)) {
    for (int quad = static_cast<int>(threadIdx.x); quad < rows * kQuads; quad += Shape::threads) {
      float4 total = make_float4(0, 0, 0, 0);
#pragma unroll 8
      for (int other = 0; other < outer; ++other)
        add_to(total, __ldcg(parts + other * rows * kQuads + quad));
      store(quad, total);
    }
  }
  cluster_barrier();  // until then others may read this block's shared memory
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
  const int begin = piece * n.steps_each, steps = max(0, min(n.steps_each, all_steps - begin));
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
    return finish_pieces<T, Shape, kRole>(n, sums, reinterpret_cast<float*>(memory), group, piece,
                                          warp_row, warp_column);
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

constexpr int kShapes = 5;
constexpr int kShapeRows[kShapes] = {32, 64, 64, 128, 128},
              kShapeColumns[kShapes] = {32, 32, 64, 32, 64};

template <typename Body>
void with_shape(int shape, const Body& body) {
  switch (shape) {
    case 0:
      return body.template operator()<GatherShape<32, 32, 2, 2>>();
    case 1:
      return body.template operator()<GatherShape<64, 32, 4, 2>>();
    case 2:
      return body.template operator()<GatherShape<64, 64, 4, 2>>();
    case 3:
      return body.template operator()<GatherShape<128, 32, 4, 2>>();
    default:
      return body.template operator()<GatherShape<128, 64, 4, 2>>();
  }
}

template <typename T, typename Shape, GatherRole kRole, bool kSign>
void start(const Gpu& gpu, const GatherNumbers& n) {
  using Layout = GatherLayout<Shape, kRole, kSign>;
  const auto kernel = gather_product<T, Shape, kRole, kSign>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Layout::bytes);
  check_cuda(allowed, "reserving shared memory");
  const dim3 blocks((n.rows + Shape::m - 1) / Shape::m, (n.columns + Shape::n - 1) / Shape::n,
                    n.groups * n.pieces);
  launch(gpu, kernel,
         {blocks, Shape::threads, Layout::bytes, dim3(1, 1, static_cast<unsigned>(n.cluster))}, n);
}

int64_t over(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

GatherProduct::GatherProduct(Context& context, const ConvCase& c, GatherRole role, bool with_sign)
    : c_(c), role_(role), with_sign_(with_sign) {
  clusters_ = has_clusters(context);
  const GatherNumbers n = gather_numbers(c, role);
  const std::vector<GatherTap> taps = gather_taps(c, role);
  taps_ = Tensor(context, {static_cast<int64_t>(taps.size() * sizeof(GatherTap))}, DType::u8);
  copy_bytes(context, taps_.raw(), Device::gpu, taps.data(), Device::cpu, taps_.bytes());
  rows_ = n.rows;
  columns_ = n.columns + (role == GatherRole::weights);  // the bias's
  depth_ = n.depth;
  windows_ = std::make_unique<WindowProduct>(context, c, role, with_sign);
  add_choices();
}

GatherProduct::~GatherProduct() = default;

void GatherProduct::add_choices() {
  const int64_t steps = over(depth_, kGatherDepth);
  for (int shape = 0; shape < kShapes && c_.pooled.empty(); ++shape) {
    const int64_t m = kShapeRows[shape], k = kShapeColumns[shape];
    const int64_t tiles = over(rows_, m) * over(columns_, k) * c_.groups;
    choices_.push_back({shape, 1, 1});
    for (int64_t blocks : {132, 264, 528, 1056}) {
      int cluster = clusters_ ? 8 : 1;
      int64_t pieces = std::min(blocks / tiles, steps / 2);
      while (cluster > pieces) cluster /= 2;
      if (pieces <= 1) continue;
      pieces -= pieces % cluster;
      const int64_t outer = pieces / cluster;
      if (outer > 1 && (tiles * cluster > Gpu::kCounters || tiles * outer * m * k > Gpu::kParts))
        continue;
      if (pieces != choices_.back().pieces)
        choices_.push_back({shape, static_cast<int>(pieces), cluster});
    }
  }
  for (size_t window = 0; window < windows_->choices().size(); ++window)
    choices_.push_back({0, 1, 1, static_cast<int>(window)});
}

std::string GatherProduct::text_of(const Choice& choice) const {
  if (choice.window < 0) return cat(choice.shape, "/", choice.pieces, "/", choice.cluster);
  const WindowProduct::Choice& window = windows_->choices()[choice.window];
  return cat("window ", window.strip, "/", window.shape, "/", window.parts);
}

void GatherProduct::launch(Context& context, const GatherTensors& t, const Choice& choice) const {
  if (choice.window >= 0) return windows_->run(context, t, windows_->choices()[choice.window]);
  const Gpu& gpu = context.gpu();
  GatherNumbers n = gather_numbers(c_, role_);
  n.pieces = choice.pieces;
  n.steps_each = static_cast<int>(over(over(n.depth, kGatherDepth), choice.pieces));
  n.cluster = choice.cluster;
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
  n.dropout = t.dropout;
  n.draws = DropoutDraws::of(Shape{c_.y.count()});
  if (n.db) ++n.columns;
  with_shape(choice.shape, [&]<typename Shape>() {
    const auto of_type = [&]<typename T>() {
      switch (role_) {
        case GatherRole::forward:
          return start<T, Shape, GatherRole::forward, false>(gpu, n);
        case GatherRole::data:
          return n.sign ? start<T, Shape, GatherRole::data, true>(gpu, n)
                        : start<T, Shape, GatherRole::data, false>(gpu, n);
        case GatherRole::weights:
          return n.sign ? start<T, Shape, GatherRole::weights, true>(gpu, n)
                        : start<T, Shape, GatherRole::weights, false>(gpu, n);
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
             " kernel ", n.kernel_width, " start ", n.start[0], ",", n.start[1], " step ",
             n.step[0], ",", n.step[1], " stride ", n.by_stride[0].divisor, ",",
             n.by_stride[1].divisor, " tap ", n.tap[0], ",", n.tap[1], " vectors ", n.a_vector, ",",
             n.b_vector, c_.pooled.empty() ? "" : " pooled");
}

void GatherProduct::tune(Context& context, const GatherTensors& scratch) {
  Tuning& tuning = context.gpu().tuning;
  if (const std::optional<std::string> known = tuning.find(key())) {
    for (const Choice& choice : choices_) {
      if (text_of(choice) == *known) {
        choice_ = choice;
        return;
      }
    }
  }
  // Without timing: the blocks that fill the card, as large as they may be then.
  choice_ = choices_.front();
  for (const Choice& choice : choices_) {
    const int64_t blocks = over(rows_, kShapeRows[choice.shape]) *
                           over(columns_, kShapeColumns[choice.shape]) * c_.groups * choice.pieces;
    if (choice.window < 0 && blocks >= 132) choice_ = choice;
  }
  if (tuning.candidates() <= 1 || !scratch.out) return;
  double best = 1e30;
  for (const Choice& choice : choices_) {
    const double seconds = tuning.time_repeated(context, [&] { launch(context, scratch, choice); });
    if (seconds < best) {
      best = seconds;
      choice_ = choice;
    }
  }
  tuning.remember(key(), text_of(choice_));
}

}  // namespace crema

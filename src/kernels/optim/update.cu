#include "kernels/optim/update.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/optim/rule_run.h"
#include "tensor/on.h"

namespace crema {
namespace {

// The sums for clipping by blob and for rates from norms: gradient, weights, first history.
template <typename T>
struct Norms {
  RuleOperands<T> in;
  CREMA_HD void add(int64_t i, SegmentSums* sums) const {
    const double g = in.pure_gradient(i), w = in.w[i], h = in.h[i];
    sums->add({g * g, w * w, h * h, g * h});
  }
};

template <typename T>
struct Exchange {
  static constexpr bool kShrinks = false;
  RuleOperands<T> in;  // h: the average
  CREMA_HD void operator()(int64_t i) const {
    const T weight = in.w[i];
    in.w[i] = in.h[i];
    in.h[i] = weight;
  }
};

// Computes norm, gradient_scale and finite from the sum of squares.
CREMA_HD inline void judge(double squares, double clip, DeviceUpdateState* state) {
  const double norm = std::sqrt(squares) / state->loss_scale;
  state->norm = norm;
  state->finite = norm - norm == 0 && !state->diverged;
  state->gradient_scale =
      static_cast<float>((clip >= 0 && norm > clip ? clip / norm : 1) / state->loss_scale);
}

struct Judge {
  const double* squares;
  double clip;
  DeviceUpdateState* state;
  CREMA_HD void operator()(int64_t) const { judge(*squares, clip, state); }
};

#ifdef __CUDACC__

// One sum per CUDA block, of which the last adds up all sums in a fixed order. Four squares are
// added in T: that loses little, and a conversion per element would cost more than its load. total:
// where the sum of all goes; null: it is judged.
template <typename T>
__global__ void square_chunks(const Chunk* chunks, int count, const T* diff, double* sums,
                              LiveUpdate live, double* to, unsigned* counter) {
  double mine = 0;
  for (int c = static_cast<int>(blockIdx.x); c < count; c += static_cast<int>(gridDim.x)) {
    const Chunk chunk = chunks[c];
    T sum = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int32_t at = k * 256 + static_cast<int32_t>(threadIdx.x);
      const T x = at < chunk.count ? diff[chunk.begin + at] : T(0);
      sum += x * x;
    }
    mine += static_cast<double>(sum);
  }
  const double all = block_all(mine, Plus{});
  if (threadIdx.x == 0) sums[blockIdx.x] = all;
  if ((!live.state && !to) || !last_of(counter, static_cast<int>(gridDim.x))) return;
  double total = 0;
#pragma unroll 8
  for (unsigned i = threadIdx.x; i < gridDim.x; i += 256) total += __ldcg(sums + i);
  total = block_all(total, Plus{});
  if (threadIdx.x > 0) return;
  if (to) {
    *to = total;
  } else {
    judge(total, live.limits.clip, live.state);
  }
}

#endif

// One sum per chunk, on a GPU per CUDA block.
template <typename T>
void sum_squares(Context& context, const Chunk* chunks, int64_t count, const T* diff, double* sums,
                 const LiveUpdate* live, double* total) {
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    if (count == 0) return;
    return launch(context.gpu(), square_chunks<T>, {blocks_for_chunks(count), 256}, chunks,
                  static_cast<int>(count), diff, sums, live ? *live : LiveUpdate{}, total,
                  context.gpu().counters);
  }
#endif
  (void)context, (void)live, (void)total;
#pragma omp parallel for schedule(static) if (count > 8)
  for (int64_t c = 0; c < count; ++c) {
    const T* x = diff + chunks[c].begin;
    const int32_t length = chunks[c].count;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t i = 0; i < length; ++i)
      sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    sums[c] = sum;
  }
}

bool is_matrix(const Segment& segment) {
  return !segment.vector && segment.shape.axes() > 1 && segment.shape[0] > 1 &&
         segment.shape.count() > segment.shape[0];
}

}  // namespace

Update::Update(Context& context, const RuleTraits& rule, const std::vector<Segment>& segments,
               const FactorRules& factors, DType dtype, const MuonOptions& muon)
    : rule_(rule),
      table_(context, segments),
      parts_{muon, {}, {}, {}},
      factors_(context, factors, table_,
               rule.scope == RuleTraits::Scope::blob_norms ||
                   (rule.scope == RuleTraits::Scope::matrix && muon.normalizes)) {
  if (rule.scope == RuleTraits::Scope::matrix) {
    divide_matrices(context, segments);
    std::vector<NewtonSchulz::Matrix> matrices;
    for (const Segment& segment : segments) {
      if (segment.lr_mult != 0 && is_matrix(segment))
        matrices.push_back({segment.offset, segment.shape, segment.format});
    }
    parts_.newton_schulz.emplace(context, std::move(matrices), muon, dtype);
  }
  int64_t sums = table_.size();
#ifdef __CUDACC__
  if (context.device() == Device::gpu) sums = blocks_for_chunks(sums);
#endif
  partial_ = Tensor(context, Shape{sums}, DType::f64);
  total_ = Tensor(context, Shape{1}, DType::f64);
}

double Update::squared_norm(Context& context, const Tensor& arena) const {
  sum_chunks(context, arena, nullptr, nullptr);
  double sum = 0;
  for (double part : to_doubles(context, partial_)) sum += part;
  return sum;
}

void Update::sum_chunks(Context& context, const Tensor& diff, const LiveUpdate* live,
                        double* total) const {
  on(diff, [&]<typename T>() {
    sum_squares(context, table_.chunks(), table_.size(), diff.data<T>(), partial_.data<double>(),
                live, total);
  });
}

void Update::measure(Context& context, const Tensor& diff, const LiveUpdate& live,
                     const std::function<void(double*)>& sum) const {
  if (!sum) return sum_chunks(context, diff, &live, nullptr);
  double* const total = total_.data<double>();
  if (table_.size() == 0) zero(context, total_);  // this rank's part has nothing that learns
  sum_chunks(context, diff, nullptr, total);
  sum(total);
  parallel_for(context, 1, Judge{total, live.limits.clip, live.state});
}

void Update::exchange(Context& context, const Tensor& data, const Tensor& average) const {
  on(data, [&]<typename T>() {
    RuleOperands<T> in{};
    in.w = data.data<T>();
    in.h = average.data<T>();
    walk<T>(context, {table_}, Exchange<T>{in});
  });
}

void Update::divide_matrices(Context& context, const std::vector<Segment>& segments) {
  parts_.matrices = ChunkTable(context, segments, is_matrix);
  parts_.others = ChunkTable(context, segments, [](const Segment& s) { return !is_matrix(s); });
}

bool Update::set_segments(Context& context, const std::vector<Segment>& segments,
                          const std::function<bool(const Segment&)>& early) {
  table_ = ChunkTable(context, segments);
  if (rule_.scope == RuleTraits::Scope::matrix) divide_matrices(context, segments);
  if (rule_.scope != RuleTraits::Scope::element || factors_.rules().any()) return false;
  early_ = ChunkTable(context, segments, early);
  late_ = ChunkTable(context, segments, [&](const Segment& s) { return !early(s); });
  return early_.size() > 0;
}

void Update::run(Context& context, const UpdateSettings& s, const UpdateArenas& arenas,
                 const LiveUpdate* live, Part part) const {
  on(arenas.data, [&]<typename T>() {
    const T no_limit = std::numeric_limits<T>::infinity();
    const std::vector<Tensor>& history = arenas.history;
    RuleOperands<T> in{arenas.diff.data<T>(),
                       arenas.data.data<T>(),
                       history[0].data<T>(),
                       history.size() > 1 ? history[1].data<T>() : nullptr,
                       s.scale,
                       s.limit >= 0 ? static_cast<T>(s.limit) : no_limit,
                       s.l1,
                       s.momentum2,
                       s.delta,
                       s.rms_decay,
                       s.amsgrad};
    in.belief = s.belief;
    in.set_hyperparameters(s.at);
    const SlowWeights<T> slow{arenas.slow.data<T>(), static_cast<T>(s.slow_length),
                              static_cast<uint64_t>(s.slow_every),
                              static_cast<uint64_t>(s.iteration)};
    const WeightCopies<T> copies{static_cast<uint16_t*>(arenas.half.raw()),
                                 arenas.half.dtype() == DType::bf16, arenas.average.data<T>(),
                                 static_cast<T>(s.keep), slow};
    T* const clear_gradient = live ? arenas.diff.data<T>() : nullptr;
    const SegmentFactor* factors = nullptr;
    if (factors_.rules().any()) {
      sum_segments(context, table_, Norms<T>{in}, factors_, live);
      factors_.decide(context, table_, s.at, s.batches, live);
      factors = factors_.factors();
    }
    const ChunkTable& table = part == Part::all ? table_ : part == Part::early ? early_ : late_;
    const Tensor none;
    const RuleRun<T> run{context, in,
                         table,   factors,
                         live,    part != Part::early,
                         copies,  clear_gradient,
                         s.at,    factors_,
                         parts_,  history.size() > 1 ? history[1] : none};
    if constexpr (std::is_same_v<T, float>) {
      rule_.passes.f32(run);
    } else {
      rule_.passes.f64(run);
    }
  });
}

}  // namespace crema

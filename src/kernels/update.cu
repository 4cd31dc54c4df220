#include "kernels/update.h"

#include <cmath>

#include "device/parallel.h"
#include "tensor/on.h"
#ifdef __CUDACC__
#include "kernels/warp.cuh"
#endif

namespace crema {
namespace {

// Segments cut into blocks of at most this many elements: what one CPU thread takes at a time. An
// element of the GPU's grid finds its block by a division.
constexpr int64_t kBlock = 1024;

struct Block {
  int64_t begin;
  int32_t count;
  float lr_mult, decay_mult;
};

// The gradient that a rule sees.
template <typename T>
struct Gradient {
  const T* diff;
  T scale;
  bool l1;
  CREMA_HD T operator()(int64_t i, T w, T decay) const {
    const T penalty = l1 ? static_cast<T>((w > 0) - (w < 0)) : w;
    return scale * diff[i] + decay * penalty;
  }
};

template <typename T>
CREMA_HD T over(T a, T b) {
  return a == 0 ? T(0) : a / b;
}

template <typename T>
struct Sgd {
  Gradient<T> gradient;
  T *w, *h;
  T momentum;
  CREMA_HD void operator()(int64_t i, T rate, T decay) const {
    h[i] = rate * gradient(i, w[i], decay) + momentum * h[i];
    w[i] -= h[i];
  }
};

template <typename T>
struct Nesterov {
  Gradient<T> gradient;
  T *w, *h;
  T momentum;
  CREMA_HD void operator()(int64_t i, T rate, T decay) const {
    const T old = h[i];
    const T now = rate * gradient(i, w[i], decay) + momentum * old;
    h[i] = now;
    w[i] -= (1 + momentum) * now - momentum * old;
  }
};

template <typename T>
struct AdaGrad {
  Gradient<T> gradient;
  T *w, *h;
  T delta;
  CREMA_HD void operator()(int64_t i, T rate, T decay) const {
    const T g = gradient(i, w[i], decay);
    h[i] += g * g;
    w[i] -= rate * over(g, std::sqrt(h[i]) + delta);
  }
};

template <typename T>
struct RmsProp {
  Gradient<T> gradient;
  T *w, *h;
  T rms_decay, delta;
  CREMA_HD void operator()(int64_t i, T rate, T decay) const {
    const T g = gradient(i, w[i], decay);
    h[i] = rms_decay * h[i] + (1 - rms_decay) * g * g;
    w[i] -= rate * over(g, std::sqrt(h[i]) + delta);
  }
};

template <typename T>
struct AdaDelta {
  Gradient<T> gradient;
  T *w, *h, *k;
  T momentum, delta;
  CREMA_HD void operator()(int64_t i, T rate, T decay) const {
    const T g = gradient(i, w[i], decay);
    h[i] = momentum * h[i] + (1 - momentum) * g * g;
    const T u = over(g * std::sqrt(delta + k[i]), std::sqrt(delta + h[i]));
    k[i] = momentum * k[i] + (1 - momentum) * u * u;
    w[i] -= rate * u;
  }
};

template <typename T>
struct Adam {
  Gradient<T> gradient;
  T *w, *h, *k;
  T momentum, momentum2, delta;
  CREMA_HD void operator()(int64_t i, T rate, T decay) const {
    const T g = gradient(i, w[i], decay);
    h[i] = momentum * h[i] + (1 - momentum) * g;
    k[i] = momentum2 * k[i] + (1 - momentum2) * g * g;
    w[i] -= rate * over(h[i], std::sqrt(k[i]) + delta);
  }
};

// Counters and loss scale after an update.
struct Advance {
  LiveUpdate live;
  CREMA_HD void operator()(int64_t) const {
    UpdateNumbers& n = *live.numbers;
    if (live.pass) ++*live.pass;
    ++n.updates;
    if (!live.limits.scales_loss) return;
    const bool grow = n.finite && n.good + 1 >= live.limits.growth_after;
    if (!n.finite && n.loss_scale > 1) n.loss_scale /= 2;
    if (grow && n.loss_scale < 0x1p24f) n.loss_scale *= 2;
    n.good = n.finite && !grow ? n.good + 1 : 0;
  }
};

// As many CUDA blocks as run at the same time: each ends with a count of all others, which costs
// more than another of our blocks.
unsigned grid_for(int64_t blocks) {
  return static_cast<unsigned>(std::min<int64_t>(blocks, 8 * 132));
}

#ifdef __CUDACC__

// Stores a weight's copy.
struct HalfCopy {
  void* memory;
  bool brain;
  template <typename T>
  __device__ void store(int64_t i, T value) const {
    if (!memory) return;
    if (brain) {
      static_cast<BFloat16*>(memory)[i] = static_cast<float>(value);
    } else {
      static_cast<Half*>(memory)[i] = static_cast<float>(value);
    }
  }
};

// Four elements a thread of each block, a warp's side by side.
template <typename T, typename Rule>
__global__ void run_blocks(Rule rule, const Block* blocks, int count, T rate, T weight_decay,
                           HalfCopy half, LiveUpdate live, unsigned* counter) {
  if (live.numbers) {
    rate = live.numbers->rates[live.numbers->updates % UpdateNumbers::kRates];
    rule.gradient.scale *= live.numbers->factor;
    if (!live.numbers->finite) count = 0;
  }
  for (int b = static_cast<int>(blockIdx.x); b < count; b += static_cast<int>(gridDim.x)) {
    const Block block = blocks[b];
    const T block_rate = rate * block.lr_mult, decay = weight_decay * block.decay_mult;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int32_t at = k * 256 + static_cast<int32_t>(threadIdx.x);
      if (at < block.count) {
        rule(block.begin + at, block_rate, decay);
        half.store(block.begin + at, rule.w[block.begin + at]);
      }
    }
  }
  if (live.numbers && last_of(counter, static_cast<int>(gridDim.x)) && threadIdx.x == 0)
    Advance{live}(0);
}

#endif

template <typename T, typename Rule>
void apply(Context& context, const UpdateStep& step, double rate_factor, const Block* blocks,
           int64_t count, const Rule& rule, const Tensor& half, const LiveUpdate* live) {
  const T rate = static_cast<T>(rate_factor * step.rate), weight_decay = step.weight_decay;
  if (count == 0) {  // nothing to learn
    if (live) parallel_for(context, 1, Advance{*live});
    return;
  }
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    static_assert(kBlock == 4 * 256);
    return launch(context.gpu(), run_blocks<T, Rule>, {grid_for(count), 256}, rule, blocks,
                  static_cast<int>(count), rate, weight_decay,
                  HalfCopy{half.raw(), half.dtype() == DType::bf16}, live ? *live : LiveUpdate{},
                  context.gpu().counters);
  }
#endif
  (void)context, (void)half;
#pragma omp parallel for schedule(static) if (count > 8)
  for (int64_t b = 0; b < count; ++b) {
    const Rule local = rule;
    const Block block = blocks[b];
    const T block_rate = rate * block.lr_mult, decay = weight_decay * block.decay_mult;
#pragma omp simd
    for (int64_t i = block.begin; i < block.begin + block.count; ++i) local(i, block_rate, decay);
  }
}

#ifdef __CUDACC__

// norm, factor and finite out of the sum of squares.
__device__ inline void judge(double squares, double clip, UpdateNumbers* numbers) {
  const double norm = sqrt(squares) / numbers->loss_scale;
  numbers->norm = norm;
  numbers->finite = norm - norm == 0;
  numbers->factor =
      static_cast<float>((clip >= 0 && norm > clip ? clip / norm : 1) / numbers->loss_scale);
}

#endif

#ifdef __CUDACC__
// A sum for each CUDA block; the last one adds up all sums, always in the same order.
template <typename T>
__global__ void square_blocks(const Block* blocks, int count, const T* diff, double* sums,
                              LiveUpdate live, unsigned* counter) {
  double mine = 0;
  for (int b = static_cast<int>(blockIdx.x); b < count; b += static_cast<int>(gridDim.x)) {
    const Block block = blocks[b];
    T sum = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int32_t at = k * 256 + static_cast<int32_t>(threadIdx.x);
      const T x = at < block.count ? diff[block.begin + at] : T(0);
      sum += x * x;
    }
    mine += static_cast<double>(sum);
  }
  const double all = block_all(mine, Plus{});
  if (threadIdx.x == 0) sums[blockIdx.x] = all;
  if (!live.numbers || !last_of(counter, static_cast<int>(gridDim.x))) return;
  double total = 0;
#pragma unroll 8
  for (unsigned i = threadIdx.x; i < gridDim.x; i += 256) total += __ldcg(sums + i);
  total = block_all(total, Plus{});
  if (threadIdx.x == 0) judge(total, live.limits.clip, live.numbers);
}

#endif

// One sum a block, on a GPU a CUDA block.
template <typename T>
void sum_squares(Context& context, const Block* blocks, int64_t count, const T* diff, double* sums,
                 const LiveUpdate* live) {
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    if (count == 0) return;
    return launch(context.gpu(), square_blocks<T>, {grid_for(count), 256}, blocks,
                  static_cast<int>(count), diff, sums, live ? *live : LiveUpdate{},
                  context.gpu().counters);
  }
#endif
  (void)context, (void)live;
#pragma omp parallel for schedule(static) if (count > 8)
  for (int64_t b = 0; b < count; ++b) {
    const T* x = diff + blocks[b].begin;
    const int32_t length = blocks[b].count;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t i = 0; i < length; ++i)
      sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    sums[b] = sum;
  }
}

}  // namespace

UpdateRule update_rule(const std::string& name) {
  const std::vector<std::string> names = {"SGD",     "Nesterov", "AdaGrad",
                                          "RMSProp", "AdaDelta", "Adam"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<UpdateRule>(i);
  }
  fail("unknown solver type \"", name, "\"", did_you_mean(name, names), "; the types are ",
       join(names, ", "));
}

int history_count(UpdateRule rule) {
  return rule == UpdateRule::adadelta || rule == UpdateRule::adam ? 2 : 1;
}

Update::Update(Context& context, UpdateRule rule, const std::vector<Segment>& segments)
    : rule_(rule) {
  std::vector<Block> blocks;
  for (const Segment& segment : segments) {
    if (segment.lr_mult == 0) continue;
    for (int64_t at = 0; at < segment.count; at += kBlock) {
      const auto count = static_cast<int32_t>(std::min(kBlock, segment.count - at));
      blocks.push_back({segment.offset + at, count, segment.lr_mult, segment.decay_mult});
    }
  }
  blocks_ = static_cast<int64_t>(blocks.size());
  const auto bytes = static_cast<int64_t>(blocks.size() * sizeof(Block));
  table_ = Tensor(context, Shape{bytes}, DType::u8);
  copy_bytes(context, table_.raw(), table_.device(), blocks.data(), Device::cpu, table_.bytes());
  const int64_t sums = context.device() == Device::gpu ? grid_for(blocks_) : blocks_;
  partial_ = Tensor(context, Shape{sums}, DType::f64);
}

double Update::squared_norm(Context& context, const Tensor& diff) const {
  sum_blocks(context, diff, nullptr);
  double sum = 0;
  for (double part : to_doubles(context, partial_)) sum += part;
  return sum;
}

void Update::sum_blocks(Context& context, const Tensor& diff, const LiveUpdate* live) const {
  on(diff, [&]<typename T>() {
    sum_squares(context, static_cast<const Block*>(table_.raw()), blocks_, diff.data<T>(),
                partial_.data<double>(), live);
  });
}

void Update::measure(Context& context, const Tensor& diff, const LiveUpdate& live) const {
  sum_blocks(context, diff, &live);
}

double Update::rate_factor(UpdateRule rule, const UpdateStep& step) {
  if (rule != UpdateRule::adam) return 1;
  const double t = static_cast<double>(step.iteration) + 1;
  return std::sqrt(1 - std::pow(step.momentum2, t)) / (1 - std::pow(step.momentum, t));
}

void Update::run(Context& context, const UpdateStep& s, const Tensor& data, const Tensor& diff,
                 const std::vector<Tensor>& history, const Tensor& half,
                 const LiveUpdate* live) const {
  on(data, [&]<typename T>() {
    const auto* blocks = static_cast<const Block*>(table_.raw());
    const Gradient<T> gradient{diff.data<T>(), s.scale, s.l1};
    T *w = data.data<T>(), *h = history[0].data<T>(),
      *k = history.size() > 1 ? history[1].data<T>() : nullptr;
    const T momentum = s.momentum, momentum2 = s.momentum2, delta = s.delta,
            rms_decay = s.rms_decay;
    const auto run = [&](const auto& rule) {
      apply<T>(context, s, rate_factor(rule_, s), blocks, blocks_, rule, half, live);
    };
    switch (rule_) {
      case UpdateRule::sgd:
        return run(Sgd<T>{gradient, w, h, momentum});
      case UpdateRule::nesterov:
        return run(Nesterov<T>{gradient, w, h, momentum});
      case UpdateRule::adagrad:
        return run(AdaGrad<T>{gradient, w, h, delta});
      case UpdateRule::rmsprop:
        return run(RmsProp<T>{gradient, w, h, rms_decay, delta});
      case UpdateRule::adadelta:
        return run(AdaDelta<T>{gradient, w, h, k, momentum, delta});
      case UpdateRule::adam:
        return run(Adam<T>{gradient, w, h, k, momentum, momentum2, delta});
    }
  });
}

}  // namespace crema

#include "kernels/update.h"

#include <cmath>

#include "device/parallel.h"
#include "kernels/sum.h"
#include "tensor/on.h"

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
  T momentum, momentum2, delta, correction;
  CREMA_HD void operator()(int64_t i, T rate, T decay) const {
    const T g = gradient(i, w[i], decay);
    h[i] = momentum * h[i] + (1 - momentum) * g;
    k[i] = momentum2 * k[i] + (1 - momentum2) * g * g;
    w[i] -= rate * correction * over(h[i], std::sqrt(k[i]) + delta);
  }
};

#ifdef __CUDACC__
template <typename T, typename Rule>
struct OnBlocks {
  Rule rule;
  const Block* blocks;
  T rate, weight_decay;
  CREMA_HD void operator()(int64_t i) const {
    const Block block = blocks[i / kBlock];
    const int64_t at = i % kBlock;
    if (at < block.count)
      rule(block.begin + at, rate * block.lr_mult, weight_decay * block.decay_mult);
  }
};
#endif

template <typename T, typename Rule>
void apply(Context& context, const UpdateStep& step, const Block* blocks, int64_t count,
           const Rule& rule) {
  const T rate = step.rate, weight_decay = step.weight_decay;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    return parallel_for(context, count * kBlock,
                        OnBlocks<T, Rule>{rule, blocks, rate, weight_decay});
  }
#endif
  (void)context;
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
template <typename T>
struct Squares {
  const T* diff;
  const Block* blocks;
  template <typename Sum>
  CREMA_HD Sum operator()(int64_t b, int64_t, int64_t i) const {
    const Block& block = blocks[b];
    const Sum x = i < block.count ? diff[block.begin + i] : T(0);
    return x * x;
  }
};
#endif

// One sum a block.
template <typename T>
void sum_squares(Context& context, const Block* blocks, int64_t count, const T* diff,
                 double* sums) {
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    return parallel_sum(context, {count, 1, kBlock}, Squares<T>{diff, blocks},
                        SumTarget<double>{sums});
  }
#endif
  (void)context;
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
  partial_ = Tensor(context, Shape{blocks_}, DType::f64);
}

double Update::squared_norm(Context& context, const Tensor& diff) const {
  on(diff, [&]<typename T>() {
    sum_squares(context, static_cast<const Block*>(table_.raw()), blocks_, diff.data<T>(),
                partial_.data<double>());
  });
  double sum = 0;
  for (double part : to_doubles(context, partial_)) sum += part;
  return sum;
}

void Update::run(Context& context, const UpdateStep& s, const Tensor& data, const Tensor& diff,
                 const std::vector<Tensor>& history) const {
  on(data, [&]<typename T>() {
    const auto* blocks = static_cast<const Block*>(table_.raw());
    const Gradient<T> gradient{diff.data<T>(), s.scale, s.l1};
    T *w = data.data<T>(), *h = history[0].data<T>(),
      *k = history.size() > 1 ? history[1].data<T>() : nullptr;
    const T momentum = s.momentum, momentum2 = s.momentum2, delta = s.delta,
            rms_decay = s.rms_decay;
    switch (rule_) {
      case UpdateRule::sgd:
        return apply<T>(context, s, blocks, blocks_, Sgd<T>{gradient, w, h, momentum});
      case UpdateRule::nesterov:
        return apply<T>(context, s, blocks, blocks_, Nesterov<T>{gradient, w, h, momentum});
      case UpdateRule::adagrad:
        return apply<T>(context, s, blocks, blocks_, AdaGrad<T>{gradient, w, h, delta});
      case UpdateRule::rmsprop:
        return apply<T>(context, s, blocks, blocks_, RmsProp<T>{gradient, w, h, rms_decay, delta});
      case UpdateRule::adadelta:
        return apply<T>(context, s, blocks, blocks_,
                        AdaDelta<T>{gradient, w, h, k, momentum, delta});
      case UpdateRule::adam: {
        const double t = static_cast<double>(s.iteration) + 1;
        const double correction =
            std::sqrt(1 - std::pow(s.momentum2, t)) / (1 - std::pow(s.momentum, t));
        const Adam<T> rule{gradient, w,         h,     k,
                           momentum, momentum2, delta, static_cast<T>(correction)};
        return apply<T>(context, s, blocks, blocks_, rule);
      }
    }
  });
}

}  // namespace crema

// Each row is processed by one thread on a CPU and by one warp on a GPU, where rereads hit the
// cache.
#include "kernels/softmax/attention.h"

#include <limits>

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "kernels/pointwise/pointwise_math.h"
#include "tensor/half.h"
#ifdef __CUDACC__
#include "kernels/core/warp.cuh"
#endif

namespace crema {
namespace {

// Applies dropout to a weight.
template <typename Real>
struct Drop {
  Random random;
  int64_t first;
  uint32_t threshold;  // random words below it drop the weight
  Real factor;
  bool on;
  CREMA_HD Real operator()(int64_t i, Real value) const {
    if (!on) return value;
    return random.word(static_cast<uint64_t>(first + i)) < threshold ? Real(0) : value * factor;
  }
};

template <typename T>
struct RowsBody {
  using Real = Compute<T>;
  static constexpr Real kLowest = std::numeric_limits<Real>::lowest();
  AttentionRows rows;
  const T* weights;  // P; before, S
  T* to;             // P, or the gradient
  T* dropped;

  CREMA_HD int64_t visible(int64_t row) const {
    const int64_t last = row % rows.queries + 1;
    return rows.causal && last < rows.keys ? last : rows.keys;
  }
  CREMA_HD Drop<Real> drop() const {
    return {rows.random.get(), rows.first * rows.keys,
            static_cast<uint32_t>(rows.ratio * 4294967296.0),
            static_cast<Real>(1 / (1 - rows.ratio)), rows.ratio > 0};
  }

  // Processes the keys first, first + step, ...; other lanes have the others. all_largest and
  // all_sum combine the lanes' results.
  template <typename Largest, typename Sum>
  CREMA_HD void weigh(int64_t row, int64_t first, int64_t step, const Largest& all_largest,
                      const Sum& all_sum) const {
    const int64_t begin = row * rows.keys, end = visible(row);
    const Drop<Real> dropping = drop();
    Real largest = kLowest, sum = 0;
    for (int64_t key = first; key < end; key += step) {
      const Real score = weights[begin + key];
      largest = score > largest ? score : largest;
    }
    largest = all_largest(largest);
    for (int64_t key = first; key < end; key += step)
      sum += exp_of(Real(weights[begin + key]) - largest);
    const Real inverse_sum = 1 / all_sum(sum);
    for (int64_t key = first; key < rows.keys; key += step) {
      const int64_t i = begin + key;
      const Real weight = key < end ? exp_of(Real(weights[i]) - largest) * inverse_sum : Real(0);
      to[i] = weight;
      if (dropped) dropped[i] = dropping(i, weight);
    }
  }

  template <typename Sum>
  CREMA_HD void gradient(int64_t row, int64_t first, int64_t step, const Sum& all_sum) const {
    const int64_t begin = row * rows.keys;
    const Drop<Real> dropping = drop();
    Real dot = 0;
    for (int64_t key = first; key < rows.keys; key += step) {
      const int64_t i = begin + key;
      dot += dropping(i, to[i]) * Real(weights[i]);
    }
    dot = all_sum(dot);
    for (int64_t key = first; key < rows.keys; key += step) {
      const int64_t i = begin + key;
      to[i] = Real(weights[i]) * (dropping(i, to[i]) - dot);
    }
  }
};

struct Alone {
  template <typename Real>
  CREMA_HD Real operator()(Real value) const {
    return value;
  }
};

template <typename T>
struct WeighRow {
  RowsBody<T> body;
  CREMA_HD void operator()(int64_t row) const { body.weigh(row, 0, 1, Alone{}, Alone{}); }
};
template <typename T>
struct GradientRow {
  RowsBody<T> body;
  CREMA_HD void operator()(int64_t row) const { body.gradient(row, 0, 1, Alone{}); }
};

#ifdef __CUDACC__

constexpr int kRowWarps = 8;

template <typename T, bool kGradient>
__global__ void __launch_bounds__(kRowWarps * 32) attention_rows(RowsBody<T> body) {
  using Real = Compute<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowWarps + threadIdx.x / 32;
  if (row >= body.rows.count) return;
  const int64_t lane = threadIdx.x % 32;
  const auto sum = [](Real value) { return warp_all(value, Plus{}); };
  if constexpr (kGradient) {
    body.gradient(row, lane, 32, sum);
  } else {
    body.weigh(
        row, lane, 32, [](Real value) { return warp_all(value, Larger{}); }, sum);
  }
}

#endif

template <typename T, bool kGradient>
void run(Context& context, const RowsBody<T>& body) {
  if (body.rows.count == 0 || body.rows.keys == 0) return;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    const auto blocks = static_cast<unsigned>(ceil_div(body.rows.count, kRowWarps));
    launch(context.gpu(), attention_rows<T, kGradient>, {blocks, kRowWarps * 32}, body);
    return;
  }
#endif
  if constexpr (kGradient) {
    parallel_for(context, body.rows.count, GradientRow<T>{body}, 16);
  } else {
    parallel_for(context, body.rows.count, WeighRow<T>{body}, 16);
  }
}

}  // namespace

template <typename T>
void attention_weights(Context& context, const AttentionRows& rows, T* weights, T* dropped) {
  run<T, false>(context, {rows, weights, weights, dropped});
}

template <typename T>
void attention_gradient(Context& context, const AttentionRows& rows, const T* weights,
                        T* gradient) {
  run<T, true>(context, {rows, weights, gradient, nullptr});
}

#define CREMA_ATTENTION(T)                                                    \
  template void attention_weights<T>(Context&, const AttentionRows&, T*, T*); \
  template void attention_gradient<T>(Context&, const AttentionRows&, const T*, T*);
CREMA_ATTENTION(float)
CREMA_ATTENTION(double)
CREMA_ATTENTION(Half)
CREMA_ATTENTION(BFloat16)
#undef CREMA_ATTENTION

}  // namespace crema

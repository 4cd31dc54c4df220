#include "kernels/softmax/top_k_mean.h"

#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"

namespace crema {
namespace {

// A value is kept when fewer than k others come before it.
template <typename T>
struct KeepBody {
  TopKMean mean;
  const T* x;
  uint8_t* kept;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t at = row % mean.count;
    const T* list = x + (row - at) * mean.inner + column;
    const T value = list[at * mean.inner];
    int64_t before = 0;
    for (int64_t i = 0; i < mean.count; ++i) {
      const T other = list[i * mean.inner];
      before += other > value || (other == value && i < at);
    }
    kept[row * mean.inner + column] = before < mean.k;
  }
};

template <typename Real>
struct KeptTerm {
  TopKMean mean;
  const Real* x;
  const uint8_t* kept;
  template <typename T>
  CREMA_HD T operator()(int64_t k, int64_t row, int64_t column) const {
    const int64_t i = (k / mean.inner * mean.count + row + column) * mean.inner + k % mean.inner;
    return kept[i] ? x[i] : T(0);
  }
};

template <typename T>
struct GradientBody {
  TopKMean mean;
  T factor;  // over k
  const T* dy;
  const uint8_t* kept;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = row * mean.inner + column;
    dx[i] = kept[i] ? factor * dy[row / mean.count * mean.inner + column] : T(0);
  }
};

}  // namespace

void top_k_mean(Context& context, const TopKMean& mean, const Tensor& x, const Tensor& kept,
                const Tensor& y) {
  on(x, [&]<typename T>() {
    parallel_rows(context, mean.outer * mean.count, mean.inner,
                  KeepBody<T>{mean, x.data<T>(), kept.data<uint8_t>()});
    const int64_t lists = mean.outer * mean.inner;
    const SumExtent each_list =
        mean.inner == 1 ? SumExtent{lists, 1, mean.count} : SumExtent{lists, mean.count, 1};
    parallel_sum<T>(context, each_list, KeptTerm<T>{mean, x.data<T>(), kept.data<uint8_t>()},
                    {y.data<T>(), static_cast<T>(mean.factor) / static_cast<T>(mean.k)});
  });
}

void top_k_mean_gradient(Context& context, const TopKMean& mean, const Tensor& dy,
                         const Tensor& kept, const Tensor& dx) {
  on(dx, [&]<typename T>() {
    parallel_rows(context, mean.outer * mean.count, mean.inner,
                  GradientBody<T>{mean, static_cast<T>(mean.factor) / static_cast<T>(mean.k),
                                  dy.data<T>(), kept.data<uint8_t>(), dx.data<T>()});
  });
}

}  // namespace crema

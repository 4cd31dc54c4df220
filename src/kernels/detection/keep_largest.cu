#include "kernels/detection/keep_largest.h"

#include "kernels/core/pointwise.h"
#include "kernels/core/rank.h"
#include "kernels/core/reduce.h"

namespace crema {
namespace {

// Finds the rank of the k-th largest value by radix select from the highest digit on, four bits at
// a time: the largest digit that still leaves k values at or above it.
constexpr int kDigitBits = 4, kDigits = (1 << kDigitBits) - 1;

template <typename T>
CREMA_HD uint32_t high_rank(T value) {
  return static_cast<uint32_t>(rank_of(static_cast<float>(value), 0) >> 32);
}

template <typename Real>
struct AtOrAbove {
  const Real* values;
  const uint32_t* rank;
  int shift;
  template <typename T>
  CREMA_HD T operator()(int64_t digit, int64_t, int64_t column) const {
    const uint32_t minimum = *rank + (static_cast<uint32_t>(digit + 1) << shift);
    return high_rank(values[column]) >= minimum ? T(1) : T(0);
  }
};

struct TakeDigit {
  uint32_t* rank;
  double k;
  int shift;
  CREMA_HD void operator()(int64_t, const double* counts) const {
    uint32_t digit = 0;
    for (int i = 0; i < kDigits; ++i) digit += counts[i] >= k;
    *rank += digit << shift;
  }
};

template <typename T>
struct KeepRank {
  const T *values, *weights;
  const uint32_t* rank;
  T* kept;
  CREMA_HD void operator()(int64_t i) const {
    kept[i] = high_rank(values[i]) >= *rank ? weights[i] : T(0);
  }
};

}  // namespace

void keep_largest(Context& context, const Tensor& values, int64_t k, const Tensor& weights,
                  const Tensor& kept, const Tensor& rank) {
  zero(context, rank);
  auto* const own = rank.data<uint32_t>();
  on(values, [&]<typename T>() {
    for (int shift = 32 - kDigitBits; shift >= 0; shift -= kDigitBits) {
      parallel_totals<T, kDigits>(context, 1, values.count(),
                                  AtOrAbove<T>{values.data<T>(), own, shift},
                                  TakeDigit{own, static_cast<double>(k), shift});
    }
    parallel_for(context, values.count(),
                 KeepRank<T>{values.data<T>(), weights.data<T>(), own, kept.data<T>()});
  });
}

}  // namespace crema

#include "kernels/detection/keep_largest.h"

#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/sort_key.h"

namespace crema {
namespace {

// Finds the sort key of the k-th largest value by radix select from the highest digit on, four bits
// at a time: the largest digit that still leaves k values at or above it.
constexpr int kDigitBits = 4, kDigits = (1 << kDigitBits) - 1;

// The key of the value in float32, even if values are float64: those that are equal in float32 are
// kept or left out together.
template <typename T>
CREMA_HD uint32_t key_of_value(T value) {
  return static_cast<uint32_t>(sort_key(static_cast<float>(value), 0) >> 32);
}

template <typename Real>
struct AtOrAbove {
  const Real* values;
  const uint32_t* key;
  int shift;
  template <typename T>
  CREMA_HD T operator()(int64_t digit, int64_t, int64_t column) const {
    const uint32_t minimum = *key + (static_cast<uint32_t>(digit + 1) << shift);
    return key_of_value(values[column]) >= minimum ? T(1) : T(0);
  }
};

struct TakeDigit {
  uint32_t* key;
  double k;
  int shift;
  CREMA_HD void operator()(int64_t, const double* counts) const {
    uint32_t digit = 0;
    for (int i = 0; i < kDigits; ++i) digit += counts[i] >= k;
    *key += digit << shift;
  }
};

template <typename T>
struct KeepFromKey {
  const T *values, *weights;
  const uint32_t* key;
  T* kept;
  CREMA_HD void operator()(int64_t i) const {
    kept[i] = key_of_value(values[i]) >= *key ? weights[i] : T(0);
  }
};

}  // namespace

void keep_largest(Context& context, const Tensor& values, int64_t k, const Tensor& weights,
                  const Tensor& kept, const Tensor& kth_key) {
  zero(context, kth_key);
  auto* const key = kth_key.data<uint32_t>();
  on(values, [&]<typename T>() {
    for (int shift = 32 - kDigitBits; shift >= 0; shift -= kDigitBits) {
      parallel_totals<T, kDigits>(context, 1, values.count(),
                                  AtOrAbove<T>{values.data<T>(), key, shift},
                                  TakeDigit{key, static_cast<double>(k), shift});
    }
    parallel_for(context, values.count(),
                 KeepFromKey<T>{values.data<T>(), weights.data<T>(), key, kept.data<T>()});
  });
}

}  // namespace crema

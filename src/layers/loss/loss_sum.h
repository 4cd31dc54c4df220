// Final step of a loss: the sum of its terms over the divisor that loss_param gives. For .cu files
// only, like device/parallel.h.
#pragma once

#include "kernels/reduce/reduce.h"
#include "layers/layer.h"
#include "layers/loss/loss_normalizer.h"

namespace crema {

// The divisor of the gradient, read on the device.
template <typename T>
struct LossDivisor {
  const T* counted;  // null: the constant
  T constant;
  CREMA_HD T value() const { return counted ? *counted : constant; }
};

// Saved, as Layer::loss_count() says: the pass's divisor, which backward reads, and its count.
inline TensorSpec loss_sums() { return {{2}, {}}; }

template <typename T>
LossDivisor<T> divisor_of(const LossNormalizer& normalizer, const Tensor& sums) {
  return {normalizer.by_valid ? sums.data<T>() : nullptr, static_cast<T>(normalizer.constant)};
}

// Sum 0 is the loss, sum 1 the count.
template <typename Terms>
struct LossSums {
  Terms terms;
  template <typename T>
  CREMA_HD T operator()(int64_t k, int64_t row, int64_t column) const {
    return k == 0 ? terms.loss(row, column) : terms.counted(row, column);
  }
};

// Divides the sum by the count, at least 1, and stores both; or divides by the constant.
template <typename T, bool kByCount>
struct DivideLoss {
  double constant;
  T *both, *loss;  // both: as loss_sums() says
  CREMA_HD void operator()(int64_t, const double* sums) const {
    double divisor = constant;
    if constexpr (kByCount) {
      divisor = sums[1] < 1 ? 1 : sums[1];
      both[0] = static_cast<T>(divisor);
      both[1] = static_cast<T>(sums[1]);
    }
    *loss = static_cast<T>(sums[0] / divisor);
  }
};

// Terms is a struct with CREMA_HD const T loss(row, column), the term before the division, and T
// counted(row, column), its contribution to the count of VALID. sums: as loss_sums() says.
template <typename T, typename Terms>
void sum_loss(Context& context, int64_t rows, int64_t columns, const Terms& terms,
              const LossNormalizer& normalizer, const Tensor& sums, const Tensor& loss) {
  const LossSums<Terms> both{terms};
  T* const into = loss.data<T>();
  if (normalizer.by_valid) {
    parallel_totals<T, 2>(context, rows, columns, both,
                          DivideLoss<T, true>{1, sums.data<T>(), into});
  } else {
    parallel_totals<T, 1>(context, rows, columns, both,
                          DivideLoss<T, false>{normalizer.constant, nullptr, into});
  }
}

}  // namespace crema

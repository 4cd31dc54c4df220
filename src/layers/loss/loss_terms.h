// Kernels over the terms of a loss (loss_layer.h). For .cu files only, like device/parallel.h.
#pragma once

#include "layers/loss/loss_sum.h"

namespace crema {

// The factor of a gradient: value(), or, in losses whose results were always rounded in that order,
// first share and then weight.
template <typename T>
struct LossScale {
  T share, weight;  // 1 / divisor, loss weight; or, if the divisor is counted, 1 and their quotient
  CREMA_HD T value() const { return share * weight; }
};

// Reads it on the device.
template <typename T>
struct ConstantScale {
  const T* weight;
  T share;
  CREMA_HD LossScale<T> read() const { return {share, *weight}; }
};
template <typename T>
struct CountedScale {
  const T* weight;
  LossDivisor<T> divisor;
  CREMA_HD LossScale<T> read() const { return {T(1), *weight / divisor.value()}; }
};

// For parallel_sum().
template <typename Terms>
struct TermValue {
  Terms terms;
  template <typename T>
  CREMA_HD T operator()(int64_t, int64_t row, int64_t column) const {
    return terms.loss(row, column);
  }
};

// For parallel_for() and parallel_rows().
template <bool kPair, typename T, typename Terms, typename Scale>
struct TermGradient {
  Terms terms;
  Scale scale;
  int64_t columns;
  T *da, *db;  // null: not needed; only a pair has db
  CREMA_HD void put(int64_t i, T slope) const {
    if (!kPair || da) da[i] = slope;
    if (kPair && db) db[i] = -slope;
  }
  CREMA_HD void operator()(int64_t i) const { put(i, terms.gradient(i, scale.read())); }
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    if constexpr (requires { terms.gradient(row, column, scale.read(), da); }) {
      terms.gradient(row, column, scale.read(), da);
    } else {
      put(row * columns + column, terms.gradient(row, column, scale.read()));
    }
  }
};

}  // namespace crema

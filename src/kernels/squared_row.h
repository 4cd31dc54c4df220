// Squared lengths of rows, and rows scaled to length 1. For .cu files only, as device/parallel.h.
#pragma once

#include "kernels/pointwise.h"
#include "kernels/sum.h"

namespace crema {

// For parallel_sum: sum k is the squared length of row k.
template <typename T>
struct SquaredRow {
  const T* rows;
  int64_t columns;
  template <typename>
  CREMA_HD T operator()(int64_t k, int64_t, int64_t column) const {
    const T value = rows[k * columns + column];
    return value * value;
  }
};

template <typename T>
struct ScaleRow {
  const T* squares;
  int64_t columns;
  T epsilon;
  T* w;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    w[row * columns + column] /= sqrt(squares[row] + epsilon);
  }
};

// Each row of w / sqrt(its squared length + epsilon); squares: scratch, one a row.
template <typename T>
void make_unit_rows(Context& context, int64_t rows, int64_t columns, T epsilon, T* w, T* squares) {
  parallel_sum<T>(context, {rows, 1, columns}, SquaredRow<T>{w, columns}, {squares});
  parallel_rows(context, rows, columns, ScaleRow<T>{squares, columns, epsilon, w});
}

}  // namespace crema

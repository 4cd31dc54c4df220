// Sums that are the same on every run: the order of additions depends on sizes only, never on the
// number of threads. For .cu files only, like device/parallel.h.
#pragma once

#include <algorithm>
#include <vector>

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "kernels/reduce/reduce_extent.h"
#ifdef __CUDACC__
#include "kernels/reduce/reduce_gpu.cuh"
#endif

namespace crema {

// Each sum in pieces of about 4096 values, the columns innermost.
template <typename T, typename Value, typename Finish>
void sum_along_columns(const SumExtent& e, const Value& value, const Finish& finish) {
  constexpr int64_t kPiece = 4096;
  const int64_t rows_each = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, e.columns));
  const int64_t columns_each = std::clamp<int64_t>(e.columns, 1, kPiece);
  const int64_t row_pieces = ceil_div(e.rows, rows_each);
  const int64_t column_pieces = ceil_div(e.columns, columns_each);
  const int64_t pieces = row_pieces * column_pieces;
  std::vector<double> partial(e.sums * pieces);
  Value local = value;  // each thread has its own copy below, so that loops vectorise
#pragma omp parallel for schedule(static) \
    firstprivate(local) if (e.sums * e.rows * e.columns > kPiece)
  for (int64_t task = 0; task < e.sums * pieces; ++task) {
    const int64_t k = task / pieces, piece = task % pieces;
    const int64_t first_row = piece / column_pieces * rows_each,
                  end_row = std::min(e.rows, first_row + rows_each);
    const int64_t first = piece % column_pieces * columns_each,
                  end = std::min(e.columns, first + columns_each);
    double sum = 0;
    for (int64_t row = first_row; row < end_row; ++row) {
      T run = 0;
#pragma omp simd reduction(+ : run)
      for (int64_t column = first; column < end; ++column)
        run += local.template operator()<T>(k, row, column);
      sum += run;
    }
    partial[task] = sum;
  }
  for (int64_t k = 0; k < e.sums; ++k) {
    double sum = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) sum += partial[k * pieces + piece];
    finish(k, &sum);
  }
}

// All sums at once, row after row: for values that are adjacent in memory across sums.
template <typename T, typename Value, typename Finish>
void sum_along_sums(const SumExtent& e, const Value& value, const Finish& finish) {
  const int64_t terms = e.rows * e.columns;
  const int64_t pieces = std::clamp<int64_t>(terms / 16, 1, 64);
  std::vector<double> partial(e.sums * pieces);
  Value local = value;
#pragma omp parallel for schedule(static) firstprivate(local) if (e.sums * terms > 4096)
  for (int64_t piece = 0; piece < pieces; ++piece) {
    double* sums = partial.data() + piece * e.sums;
    for (int64_t i = terms * piece / pieces; i < terms * (piece + 1) / pieces; ++i) {
      const int64_t row = i / e.columns, column = i % e.columns;
#pragma omp simd
      for (int64_t k = 0; k < e.sums; ++k) sums[k] += local.template operator()<T>(k, row, column);
    }
  }
  for (int64_t k = 0; k < e.sums; ++k) {
    double sum = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) sum += partial[piece * e.sums + k];
    finish(k, &sum);
  }
}

// Sum k, for k < e.sums, of value(k, row, column) over all rows and columns of the extent. Value is
// a struct with CREMA_HD T operator()<T>(k, row, column) const; values are added in T for short
// runs, and in double beyond. Choose columns = 1 when neighbors in memory belong to different
// sums. finish(k, &sum) is called once per sum, on the device; it usually is a SumTarget, which
// stores the sum and may be given as {out}, {out, factor} or {out, factor, accumulate}.
template <typename T, typename Value, typename Finish = SumTarget<T>>
void parallel_sum(Context& context, const SumExtent& e, const Value& value, const Finish& finish) {
#ifdef __CUDACC__
  if (context.device() == Device::gpu) return sum_on_gpu<T>(context.gpu(), e, value, finish);
#endif
  (void)context;
  if (e.columns == 1 && e.sums > 1) {
    sum_along_sums<T>(e, value, finish);
  } else {
    sum_along_columns<T>(e, value, finish);
  }
}

template <int kSums>
struct KeepTotals {
  double* totals;
  void operator()(int64_t k, const double* sum) const { totals[k] = *sum; }
};

// kSums sums over the same rows and columns in one pass, and a result computed from them, such as a
// quotient: finish(0, sums) is called once, on the device.
template <typename T, int kSums, typename Value, typename Finish>
void parallel_totals(Context& context, int64_t rows, int64_t columns, const Value& value,
                     const Finish& finish) {
#ifdef __CUDACC__
  if (context.device() == Device::gpu)
    return totals_on_gpu<T, kSums>(context.gpu(), rows, columns, value, finish);
#endif
  (void)context;
  double totals[kSums];
  sum_along_columns<T>({kSums, rows, columns}, value, KeepTotals<kSums>{totals});
  finish(0, totals);
}

}  // namespace crema

// Row normalization in float64 on the GPU, for tests only: one thread per row, or per parameter.
#pragma once

#include <cmath>

#include "kernels/norm/row_norm.h"

namespace crema {

// x, dy, ... as in RowNorm.
struct RowsFloat64 {
  RowNormView view;
  double eps;
  bool centre_only, eps_beside_root, from_result;
  const double *x, *dy, *scale, *shift;
  double *mean, *inverse;

  // Calls visit(memory offset, parameter).
  template <typename Visit>
  CREMA_HD void over(int64_t row, const Visit& visit) const {
    const int64_t begin = view.begin(row), parameter = view.first_parameter(row);
    for (int64_t run = 0; run < view.runs; ++run) {
      for (int64_t k = 0; k < view.run; ++k)
        visit(begin + run * view.run_step + k, parameter + (view.by_run ? run : k));
    }
  }
  // The divisor of sums over a row.
  CREMA_HD double length() const { return mean ? static_cast<double>(view.length()) : 1; }
  // The normalized value of x, in backward.
  CREMA_HD double normal(int64_t row, int64_t at) const {
    return from_result ? x[at] : (x[at] - (mean ? mean[row] : 0)) * inverse[row];
  }
};

struct ForwardFloat64 {
  RowsFloat64 n;
  double* y;
  CREMA_HD void operator()(int64_t row) const {
    const double length = n.length();
    double sum = 0, squares = 0;
    n.over(row, [&](int64_t at, int64_t) { sum += n.x[at]; });
    const double mean = n.mean ? sum / length : 0;
    if (n.mean) n.mean[row] = mean;
    n.over(row, [&](int64_t at, int64_t) { squares += (n.x[at] - mean) * (n.x[at] - mean); });
    const double variance = squares / length;
    n.inverse[row] = n.centre_only       ? 1
                     : n.eps_beside_root ? 1 / (sqrt(variance) + n.eps)
                                         : 1 / sqrt(variance + n.eps);
    n.over(row, [&](int64_t at, int64_t j) {
      y[at] = (n.x[at] - mean) * n.inverse[row] * (n.scale ? n.scale[j] : 1) +
              (n.shift ? n.shift[j] : 0);
    });
  }
};

struct GradientFloat64 {
  RowsFloat64 n;
  double* dx;
  CREMA_HD double above(int64_t at, int64_t j) const {
    return n.dy[at] * (n.scale ? n.scale[j] : 1);
  }
  CREMA_HD void operator()(int64_t row) const {
    const double length = n.length();
    double sum = 0, product = 0;
    n.over(row, [&](int64_t at, int64_t j) {
      sum += above(at, j), product += above(at, j) * n.normal(row, at);
    });
    const double offset = n.mean ? sum / length : 0;
    n.over(row, [&](int64_t at, int64_t j) {
      const double slant = n.centre_only ? 0 : n.normal(row, at) * product / length;
      dx[at] = n.inverse[row] * (above(at, j) - offset - slant);
    });
  }
};

struct ParametersFloat64 {
  RowsFloat64 n;
  double *d_scale, *d_shift;  // null: not wanted
  bool accumulate_scale, accumulate_shift;
  CREMA_HD void operator()(int64_t parameter) const {
    double scale = 0, shift = 0;
    for (int64_t row = parameter / n.view.each(); row < n.view.rows; row += n.view.groups) {
      n.over(row, [&](int64_t at, int64_t j) {
        if (j != parameter) return;
        scale += n.dy[at] * n.normal(row, at), shift += n.dy[at];
      });
    }
    if (d_scale) d_scale[parameter] = scale + (accumulate_scale ? d_scale[parameter] : 0);
    if (d_shift) d_shift[parameter] = shift + (accumulate_shift ? d_shift[parameter] : 0);
  }
};

inline RowsFloat64 plain_rows(const RowNorm& n, const Tensor& x, const Tensor& dy) {
  return {n.view,
          n.eps,
          n.centre_only,
          n.eps_beside_root,
          n.from_result,
          x.data<double>(),
          dy.data<double>(),
          n.scale.data<double>(),
          n.shift.data<double>(),
          n.mean.data<double>(),
          n.inverse.data<double>()};
}

}  // namespace crema

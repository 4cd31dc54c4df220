// Row normalization in float64 on the GPU, for tests only: one thread per row, or per parameter.
#pragma once

#include <cmath>

#include "kernels/norm/row_norm.h"

namespace crema {

// x, dy, ... as in kernels/norm/row_norm.h.
struct RowsFloat64 {
  RowNormCase c;
  const double *x, *dy, *scale, *shift;
  double *mean, *inverse;

  // Calls visit(memory offset, parameter).
  template <typename Visit>
  CREMA_HD void over(int64_t row, const Visit& visit) const {
    const RowNormView& v = c.view;
    const int64_t begin = v.begin(row), parameter = v.first_parameter(row);
    for (int64_t segment = 0; segment < v.segments; ++segment) {
      for (int64_t k = 0; k < v.segment; ++k) {
        visit(begin + segment * v.segment_stride + k,
              parameter + (v.parameter_per_segment ? segment : k));
      }
    }
  }
  CREMA_HD double divisor() const { return static_cast<double>(c.divisor()); }
  // The normalized value of x, in backward.
  CREMA_HD double normal(int64_t row, int64_t at) const {
    return c.backward_reads_y ? x[at] : (x[at] - (mean ? mean[row] : 0)) * inverse[row];
  }
};

struct ForwardFloat64 {
  RowsFloat64 n;
  double* y;
  CREMA_HD void operator()(int64_t row) const {
    const double divisor = n.divisor();
    double sum = 0, squares = 0;
    n.over(row, [&](int64_t at, int64_t) { sum += n.x[at]; });
    const double mean = n.mean ? sum / divisor : 0;
    if (n.mean) n.mean[row] = mean;
    n.over(row, [&](int64_t at, int64_t) { squares += (n.x[at] - mean) * (n.x[at] - mean); });
    n.inverse[row] = n.c.inverse_of(squares / divisor);
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
    const double divisor = n.divisor();
    double sum = 0, product = 0;
    n.over(row, [&](int64_t at, int64_t j) {
      sum += above(at, j), product += above(at, j) * n.normal(row, at);
    });
    const double mean_g = n.mean ? sum / divisor : 0;
    n.over(row, [&](int64_t at, int64_t j) {
      const double projection =
          n.c.divide == RowNormCase::Divide::nothing ? 0 : n.normal(row, at) * product / divisor;
      dx[at] = n.inverse[row] * (above(at, j) - mean_g - projection);
    });
  }
};

struct ParametersFloat64 {
  RowsFloat64 n;
  double *d_scale, *d_shift;  // null: not wanted
  bool accumulate_scale, accumulate_shift;
  CREMA_HD void operator()(int64_t parameter) const {
    double scale = 0, shift = 0;
    for (int64_t row = parameter / n.c.view.each(); row < n.c.view.rows; row += n.c.view.groups) {
      n.over(row, [&](int64_t at, int64_t j) {
        if (j != parameter) return;
        scale += n.dy[at] * n.normal(row, at), shift += n.dy[at];
      });
    }
    if (d_scale) d_scale[parameter] = scale + (accumulate_scale ? d_scale[parameter] : 0);
    if (d_shift) d_shift[parameter] = shift + (accumulate_shift ? d_shift[parameter] : 0);
  }
};

inline RowsFloat64 rows_float64(const RowNormCase& c, const RowNormParameters& p, const Tensor& x,
                                const Tensor& dy, const RowNormSaved& saved) {
  return {c,
          x.data<double>(),
          dy.data<double>(),
          p.scale.data<double>(),
          p.shift.data<double>(),
          saved.mean.data<double>(),
          saved.inverse.data<double>()};
}

}  // namespace crema

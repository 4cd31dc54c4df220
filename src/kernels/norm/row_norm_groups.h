// Row normalization on the CPU for rows that are groups of a few channels in channels-last order:
// processes several adjacent groups at once, so that inner loops are longer than a group.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/norm/row_norm.h"

namespace crema {

constexpr int64_t kMaxAdjacent = 64;  // channels of the groups that are processed together

inline bool supports_adjacent_groups(const RowNorm& n) {
  const RowNormView& v = n.view;
  return !v.by_run && v.runs > 1 && v.run < kMaxAdjacent && v.group_step == v.run && n.mean &&
         !n.centre_only && !n.from_result && !n.eps_beside_root;
}

// Adjacent groups of an image.
template <typename T>
struct AdjacentGroups {
  const RowNormView& v;
  int64_t first_row, groups, channels, begin, parameter;

  static int64_t together(const RowNormView& v) { return std::min(v.groups, kMaxAdjacent / v.run); }
  static int64_t pieces(const RowNormView& v) { return (v.groups + together(v) - 1) / together(v); }
  AdjacentGroups(const RowNormView& view, int64_t image, int64_t piece)
      : v(view),
        first_row(image * v.groups + piece * together(v)),
        groups(std::min(together(v), v.groups - piece * together(v))),
        channels(groups * v.run),
        begin(v.begin(first_row)),
        parameter(v.first_parameter(first_row)) {}

  // each[c] = of_row(row of channel c)
  template <typename OfRow>
  void spread(T* each, const OfRow& of_row) const {
    for (int64_t c = 0; c < channels; ++c) each[c] = of_row(first_row + c / v.run);
  }

  // Two sums for each channel c of the pair that term(i, c) returns for memory offset i; in double
  // after every kRuns runs.
  template <typename Term>
  void sum(const Term& term, double* first, double* second) const {
    constexpr int64_t kRuns = 32;
    std::fill(first, first + channels, 0.0);
    std::fill(second, second + channels, 0.0);
    for (int64_t run = 0; run < v.runs; run += kRuns) {
      T a[kMaxAdjacent] = {}, b[kMaxAdjacent] = {};
      for (int64_t k = run; k < std::min(run + kRuns, v.runs); ++k) {
        const int64_t at = begin + k * v.run_step;
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) {
          T g, h;
          term(at + c, c, g, h);
          a[c] += g, b[c] += h;
        }
      }
      for (int64_t c = 0; c < channels; ++c) first[c] += a[c], second[c] += b[c];
    }
  }
  // The sum over the group that starts at channel c.
  double of_group(const double* sums, int64_t c) const {
    double sum = 0;
    for (int64_t k = 0; k < v.run; ++k) sum += sums[c + k];
    return sum;
  }
  template <typename Body>
  void each(const Body& body) const {
    for (int64_t run = 0; run < v.runs; ++run) {
      const int64_t at = begin + run * v.run_step;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) body(at + c, c);
    }
  }
};

template <typename T>
void forward_adjacent_groups(const RowNorm& n, const T* x, T* y) {
  const RowNormView v = n.view;
  const T *scale = n.scale.data<T>(), *shift = n.shift.data<T>();
  T *const mean = n.mean.data<T>(), *const inverse = n.inverse.data<T>();
  const int64_t pieces = AdjacentGroups<T>::pieces(v);
  const auto length = static_cast<double>(v.length());
#pragma omp parallel for schedule(static)
  for (int64_t task = 0; task < v.rows / v.groups * pieces; ++task) {
    const AdjacentGroups<T> part(v, task / pieces, task % pieces);
    double sums[kMaxAdjacent], squares[kMaxAdjacent];
    T center[kMaxAdjacent], by[kMaxAdjacent], factor[kMaxAdjacent], summand[kMaxAdjacent];
    part.spread(center, [&](int64_t row) { return x[v.begin(row)]; });
    part.sum(
        [&](int64_t i, int64_t c, T& a, T& b) {
          a = x[i] - center[c];
          b = a * a;
        },
        sums, squares);
    for (int64_t g = 0; g < part.groups; ++g) {
      const double near = part.of_group(sums, g * v.run) / length;
      const double spread = part.of_group(squares, g * v.run) / length - near * near;
      mean[part.first_row + g] = static_cast<T>(center[g * v.run] + near);
      inverse[part.first_row + g] = static_cast<T>(1 / std::sqrt(std::max(spread, 0.0) + n.eps));
    }
    part.spread(center, [&](int64_t row) { return mean[row]; });
    part.spread(by, [&](int64_t row) { return inverse[row]; });
    for (int64_t c = 0; c < part.channels; ++c) {
      factor[c] = scale ? scale[part.parameter + c] : T(1);
      summand[c] = shift ? shift[part.parameter + c] : T(0);
    }
    part.each(
        [&](int64_t i, int64_t c) { y[i] = (x[i] - center[c]) * by[c] * factor[c] + summand[c]; });
  }
}

// parts: for each of `shares` parts of the images, the sums for the scales, then for the shifts.
template <typename T>
void backward_adjacent_groups(const RowNorm& n, const T* x, const T* dy, T* dx, int64_t shares,
                              T* parts) {
  const RowNormView v = n.view;
  const T* scale = n.scale.data<T>();
  const T *const mean = n.mean.data<T>(), *const inverse = n.inverse.data<T>();
  const int64_t pieces = AdjacentGroups<T>::pieces(v), images = v.rows / v.groups;
  const auto length = static_cast<double>(v.length());
#pragma omp parallel for schedule(static)
  for (int64_t task = 0; task < shares * pieces; ++task) {
    const int64_t share = task / pieces, end = images * (share + 1) / shares;
    for (int64_t image = images * share / shares; image < end; ++image) {
      const AdjacentGroups<T> part(v, image, task % pieces);
      T *const scales = parts + share * 2 * v.parameters() + part.parameter, *const shifts =
                                                                                 scales +
                                                                                 v.parameters();
      const bool first = image == images * share / shares;
      double sums[kMaxAdjacent], products[kMaxAdjacent];
      T center[kMaxAdjacent], by[kMaxAdjacent], factor[kMaxAdjacent];
      T offset[kMaxAdjacent], slant[kMaxAdjacent];
      part.spread(center, [&](int64_t row) { return mean[row]; });
      part.spread(by, [&](int64_t row) { return inverse[row]; });
      part.sum(
          [&](int64_t i, int64_t c, T& a, T& b) {
            a = dy[i];
            b = dy[i] * (x[i] - center[c]) * by[c];
          },
          sums, products);
      for (int64_t c = 0; c < part.channels; ++c) {
        scales[c] = (first ? T(0) : scales[c]) + static_cast<T>(products[c]);
        shifts[c] = (first ? T(0) : shifts[c]) + static_cast<T>(sums[c]);
        factor[c] = scale ? scale[part.parameter + c] : T(1);
        sums[c] *= factor[c], products[c] *= factor[c];
      }
      if (!dx) continue;
      for (int64_t g = 0; g < part.groups; ++g) {
        const int64_t c = g * v.run;
        std::fill(offset + c, offset + c + v.run, static_cast<T>(part.of_group(sums, c) / length));
        std::fill(slant + c, slant + c + v.run,
                  static_cast<T>(part.of_group(products, c) / length));
      }
      part.each([&](int64_t i, int64_t c) {
        dx[i] = by[c] * (dy[i] * factor[c] - offset[c] - (x[i] - center[c]) * by[c] * slant[c]);
      });
    }
  }
}

}  // namespace crema

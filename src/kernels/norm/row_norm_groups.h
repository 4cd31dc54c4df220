// Row normalization on the CPU for rows that are groups of a few channels in channels-last order:
// processes several adjacent groups at once, so that inner loops are longer than a group.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/ceil_div.h"
#include "kernels/norm/row_norm.h"

namespace crema {

constexpr int64_t kMaxAdjacent = 64;  // channels of the groups that are processed together

inline bool supports_adjacent_groups(const RowNormCase& c) {
  const RowNormView& v = c.view;
  return !v.parameter_per_segment && v.segments > 1 && v.segment < kMaxAdjacent &&
         v.group_step == v.segment && c.center && !c.backward_reads_y &&
         c.divide == RowNormCase::Divide::sqrt_of_variance_plus_eps;
}

// Adjacent groups of an image.
template <typename T>
struct AdjacentGroups {
  const RowNormView& v;
  int64_t first_row, groups, channels, begin, parameter;

  static int64_t together(const RowNormView& v) {
    return std::min(v.groups, kMaxAdjacent / v.segment);
  }
  static int64_t pieces(const RowNormView& v) { return ceil_div(v.groups, together(v)); }
  AdjacentGroups(const RowNormView& view, int64_t image, int64_t piece)
      : v(view),
        first_row(image * v.groups + piece * together(v)),
        groups(std::min(together(v), v.groups - piece * together(v))),
        channels(groups * v.segment),
        begin(v.begin(first_row)),
        parameter(v.first_parameter(first_row)) {}

  // each[c] = of_row(row of channel c)
  template <typename OfRow>
  void repeat(T* each, const OfRow& of_row) const {
    for (int64_t c = 0; c < channels; ++c) each[c] = of_row(first_row + c / v.segment);
  }

  // Two sums for each channel c of the pair that term(i, c) returns for memory offset i; in double
  // after every kSegments segments.
  template <typename Term>
  void sum(const Term& term, double* first, double* second) const {
    constexpr int64_t kSegments = 32;
    std::fill(first, first + channels, 0.0);
    std::fill(second, second + channels, 0.0);
    for (int64_t first_segment = 0; first_segment < v.segments; first_segment += kSegments) {
      T a[kMaxAdjacent] = {}, b[kMaxAdjacent] = {};
      const int64_t end = std::min(first_segment + kSegments, v.segments);
      for (int64_t k = first_segment; k < end; ++k) {
        const int64_t at = begin + k * v.segment_stride;
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
    for (int64_t k = 0; k < v.segment; ++k) sum += sums[c + k];
    return sum;
  }
  template <typename Body>
  void each(const Body& body) const {
    for (int64_t segment = 0; segment < v.segments; ++segment) {
      const int64_t at = begin + segment * v.segment_stride;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) body(at + c, c);
    }
  }
};

template <typename T>
void forward_adjacent_groups(const RowNormCase& rule, const RowNormParameters& p, const T* x, T* y,
                             const RowNormSaved& saved) {
  const RowNormView v = rule.view;
  const T *scale = p.scale.data<T>(), *shift = p.shift.data<T>();
  T *const mean = saved.mean.data<T>(), *const inverse = saved.inverse.data<T>();
  const int64_t pieces = AdjacentGroups<T>::pieces(v);
  const auto length = static_cast<double>(v.length());
#pragma omp parallel for schedule(static)
  for (int64_t task = 0; task < v.rows / v.groups * pieces; ++task) {
    const AdjacentGroups<T> part(v, task / pieces, task % pieces);
    double sums[kMaxAdjacent], squares[kMaxAdjacent];
    T center[kMaxAdjacent], by[kMaxAdjacent], factor[kMaxAdjacent], summand[kMaxAdjacent];
    part.repeat(center, [&](int64_t row) { return x[v.begin(row)]; });
    part.sum(
        [&](int64_t i, int64_t c, T& a, T& b) {
          a = x[i] - center[c];
          b = a * a;
        },
        sums, squares);
    for (int64_t g = 0; g < part.groups; ++g) {
      const double near = part.of_group(sums, g * v.segment) / length;
      // Rounding may make the difference negative.
      const double variance =
          std::max(part.of_group(squares, g * v.segment) / length - near * near, 0.0);
      mean[part.first_row + g] = static_cast<T>(center[g * v.segment] + near);
      inverse[part.first_row + g] = static_cast<T>(rule.inverse_of(variance));
    }
    part.repeat(center, [&](int64_t row) { return mean[row]; });
    part.repeat(by, [&](int64_t row) { return inverse[row]; });
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
void backward_adjacent_groups(const RowNormCase& rule, const RowNormParameters& p, const T* x,
                              const T* dy, const RowNormSaved& saved, T* dx, int64_t shares,
                              T* parts) {
  const RowNormView v = rule.view;
  const T* scale = p.scale.data<T>();
  const T *const mean = saved.mean.data<T>(), *const inverse = saved.inverse.data<T>();
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
      T mean_g[kMaxAdjacent], mean_gx[kMaxAdjacent];
      part.repeat(center, [&](int64_t row) { return mean[row]; });
      part.repeat(by, [&](int64_t row) { return inverse[row]; });
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
        const int64_t c = g * v.segment;
        std::fill(mean_g + c, mean_g + c + v.segment,
                  static_cast<T>(part.of_group(sums, c) / length));
        std::fill(mean_gx + c, mean_gx + c + v.segment,
                  static_cast<T>(part.of_group(products, c) / length));
      }
      part.each([&](int64_t i, int64_t c) {
        dx[i] = by[c] * (dy[i] * factor[c] - mean_g[c] - (x[i] - center[c]) * by[c] * mean_gx[c]);
      });
    }
  }
}

}  // namespace crema

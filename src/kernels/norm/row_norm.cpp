// Row normalization on the CPU, one thread per row.
#include "kernels/norm/row_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/norm/row_norm_groups.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Two sums over the runs of a row of the pair that `term(i, j)` returns for memory offset i and
// parameter j. The sums of runs are added in double.
template <typename T, typename Term>
void sum_row(const RowNormView& v, int64_t row, const Term& term, double& first, double& second) {
  const int64_t begin = v.begin(row), parameter = v.first_parameter(row);
  first = second = 0;
  for (int64_t run = 0; run < v.runs; ++run) {
    const int64_t at = begin + run * v.run_step;
    T a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
    for (int64_t k = 0; k < v.run; ++k) {
      T g, h;
      term(at + k, parameter + (v.by_run ? run : k), g, h);
      a += g, b += h;
    }
    first += a, second += b;
  }
}

template <typename Body>
void over_row(const RowNormView& v, int64_t row, const Body& body) {
  const int64_t begin = v.begin(row), parameter = v.first_parameter(row);
  for (int64_t run = 0; run < v.runs; ++run) {
    const int64_t at = begin + run * v.run_step;
#pragma omp simd
    for (int64_t k = 0; k < v.run; ++k) body(at + k, parameter + (v.by_run ? run : k));
  }
}

template <typename T>
void forward(const RowNorm& n, const T* x, T* y) {
  const RowNormView v = n.view;
  const T *scale = n.scale.data<T>(), *shift = n.shift.data<T>();
  T *mean = n.mean.data<T>(), *inverse = n.inverse.data<T>();
  const auto length = mean ? static_cast<double>(v.length()) : 1.0;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < v.rows; ++row) {
    const T pivot = mean ? x[v.begin(row)] : T(0);  // differences from it keep all digits
    double sum, squares;
    sum_row<T>(
        v, row,
        [=](int64_t i, int64_t, T& a, T& b) {
          a = x[i] - pivot;
          b = a * a;
        },
        sum, squares);
    const double near = mean ? sum / length : 0, spread = squares / length - near * near;
    const T center = static_cast<T>(pivot + near);
    if (mean) mean[row] = center;
    const double variance = std::max(spread, 0.0);
    const T by = inverse[row] =
        static_cast<T>(n.centre_only       ? 1
                       : n.eps_beside_root ? 1 / (std::sqrt(variance) + n.eps)
                                           : 1 / std::sqrt(variance + n.eps));
    over_row(v, row, [=](int64_t i, int64_t j) {
      const T value = (x[i] - center) * by;
      y[i] = (scale ? value * scale[j] : value) + (shift ? shift[j] : T(0));
    });
  }
}

template <typename T>
void backward_data(const RowNorm& n, const T* x, const T* dy, T* dx) {
  const RowNormView v = n.view;
  const T *scale = n.scale.data<T>(), *mean = n.mean.data<T>();
  const auto length = mean ? static_cast<double>(v.length()) : 1.0;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < v.rows; ++row) {
    const T inverse = n.inverse.data<T>()[row];
    // x is already normalized where it is the result.
    const T center = n.from_result || !mean ? T(0) : mean[row];
    const T by = n.from_result ? T(1) : inverse;
    double sum, product;
    sum_row<T>(
        v, row,
        [=](int64_t i, int64_t j, T& a, T& b) {
          a = scale ? dy[i] * scale[j] : dy[i];
          b = a * (x[i] - center) * by;
        },
        sum, product);
    const T offset = mean ? static_cast<T>(sum / length) : T(0);
    const T slant = n.centre_only ? T(0) : static_cast<T>(product / length);
    over_row(v, row, [=](int64_t i, int64_t j) {
      const T g = scale ? dy[i] * scale[j] : dy[i];
      dx[i] = inverse * (g - offset - (x[i] - center) * by * slant);
    });
  }
}

// The number of pieces of the rows whose sums are added in order; it must not depend on the number
// of threads.
int64_t pieces_of(const RowNormView& v) { return std::clamp<int64_t>(v.rows / v.groups, 1, 64); }

template <typename T>
void parameter_gradients(const RowNorm& n, const T* x, const T* dy, T* parts) {
  const RowNormView v = n.view;
  const int64_t pieces = pieces_of(v), count = v.parameters(), images = v.rows / v.groups;
#pragma omp parallel for schedule(static)
  for (int64_t piece = 0; piece < pieces; ++piece) {
    T *const scales = parts + piece * 2 * count, *const shifts = scales + count;
    std::fill(scales, scales + 2 * count, T(0));
    const int64_t end = images * (piece + 1) / pieces * v.groups;
    for (int64_t row = images * piece / pieces * v.groups; row < end; ++row) {
      const T center = n.mean ? n.mean.data<T>()[row] : T(0), by = n.inverse.data<T>()[row];
      const int64_t begin = v.begin(row), parameter = v.first_parameter(row);
      for (int64_t run = 0; run < v.runs; ++run) {
        const int64_t at = begin + run * v.run_step;
        if (!v.by_run) {
#pragma omp simd
          for (int64_t k = 0; k < v.run; ++k) {
            scales[parameter + k] += dy[at + k] * (x[at + k] - center) * by;
            shifts[parameter + k] += dy[at + k];
          }
          continue;
        }
        T scale = 0, shift = 0;
#pragma omp simd reduction(+ : scale, shift)
        for (int64_t k = 0; k < v.run; ++k) {
          scale += dy[at + k] * (x[at + k] - center) * by;
          shift += dy[at + k];
        }
        scales[parameter + run] += scale;
        shifts[parameter + run] += shift;
      }
    }
  }
}

// Adds up the partial sums of all pieces.
template <typename T>
void finish_parameters(const RowNorm& n, const RowNormGradients& g, const T* parts) {
  const int64_t pieces = pieces_of(n.view), count = n.view.parameters();
  const auto add = [&](const Tensor& to, bool accumulate, int64_t offset) {
    for (int64_t j = 0; to && j < count; ++j) {
      double sum = accumulate ? static_cast<double>(to.data<T>()[j]) : 0.0;
      for (int64_t piece = 0; piece < pieces; ++piece) sum += parts[piece * 2 * count + offset + j];
      to.data<T>()[j] = static_cast<T>(sum);
    }
  };
  add(g.d_scale, g.accumulate_scale, 0);
  add(g.d_shift, g.accumulate_shift, count);
}

}  // namespace

RowNormView RowNormView::of_rows(int64_t rows, int64_t length) {
  RowNormView v;
  v.rows = rows;
  v.image_step = v.run = length;
  return v;
}

RowNormView RowNormView::of_groups(const Shape& shape, const Format& format, int64_t groups) {
  RowNormView v;
  const int64_t channels = shape[1] / groups, positions = shape.count(2);
  v.rows = shape[0] * groups;
  v.groups = groups;
  v.image_step = shape.count(1);
  if (format.order == Order::channels_last && positions > 1) {
    v.group_step = v.run = channels;
    v.runs = positions;
    v.run_step = shape[1];
  } else {
    v.group_step = channels * positions;
    v.runs = channels;
    v.run = v.run_step = positions;
    v.by_run = true;
  }
  return v;
}

size_t row_norm_workspace(Context& context, const RowNormView& view) {
  if (context.device() == Device::gpu) return 0;
  return static_cast<size_t>(pieces_of(view) * 2 * view.parameters()) * sizeof(double);
}

void row_norm_forward(Context& context, const RowNorm& n, const Tensor& x, const Tensor& y) {
  if (x.count() == 0) return;
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu) return row_norm_forward_gpu(context, n, x, y);
#else
  (void)context;
#endif
  on(x, [&]<typename T>() {
    supports_adjacent_groups(n) ? forward_adjacent_groups(n, x.data<T>(), y.data<T>())
                                : forward(n, x.data<T>(), y.data<T>());
  });
}

void row_norm_backward(Context& context, const RowNorm& n, const Tensor& x, const Tensor& dy,
                       const RowNormGradients& gradients, const Tensor& workspace) {
  if (x.count() == 0) return;
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu) return row_norm_backward_gpu(context, n, x, dy, gradients);
#else
  (void)context;
#endif
  on(x, [&]<typename T>() {
    const T *from = x.data<T>(), *slopes = dy.data<T>();
    T *const dx = gradients.dx.data<T>(), *const parts = workspace.data<T>();
    const bool learns = gradients.d_scale || gradients.d_shift;
    if (supports_adjacent_groups(n)) {
      backward_adjacent_groups(n, from, slopes, dx, pieces_of(n.view), parts);
    } else {
      if (learns) parameter_gradients(n, from, slopes, parts);
      if (dx) backward_data(n, from, slopes, dx);
    }
    if (learns) finish_parameters(n, gradients, parts);
  });
}

}  // namespace crema

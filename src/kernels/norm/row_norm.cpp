// Row normalization on the CPU, one thread per row.
#include "kernels/norm/row_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/norm/row_norm_groups.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Two sums over the segments of a row of the pair that `term(i, j)` returns for memory offset i and
// parameter j. The sums of segments are added in double.
template <typename T, typename Term>
void sum_row(const RowNormView& v, int64_t row, const Term& term, double& first, double& second) {
  const int64_t begin = v.begin(row), parameter = v.first_parameter(row);
  first = second = 0;
  for (int64_t segment = 0; segment < v.segments; ++segment) {
    const int64_t at = begin + segment * v.segment_stride;
    T a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
    for (int64_t k = 0; k < v.segment; ++k) {
      T g, h;
      term(at + k, parameter + (v.parameter_per_segment ? segment : k), g, h);
      a += g, b += h;
    }
    first += a, second += b;
  }
}

template <typename Body>
void over_row(const RowNormView& v, int64_t row, const Body& body) {
  const int64_t begin = v.begin(row), parameter = v.first_parameter(row);
  for (int64_t segment = 0; segment < v.segments; ++segment) {
    const int64_t at = begin + segment * v.segment_stride;
#pragma omp simd
    for (int64_t k = 0; k < v.segment; ++k)
      body(at + k, parameter + (v.parameter_per_segment ? segment : k));
  }
}

template <typename T>
void forward(const RowNormCase& c, const RowNormParameters& p, const T* x, T* y,
             const RowNormSaved& saved) {
  const RowNormView v = c.view;
  const T *scale = p.scale.data<T>(), *shift = p.shift.data<T>();
  T *mean = saved.mean.data<T>(), *inverse = saved.inverse.data<T>();
  const auto divisor = static_cast<double>(c.divisor());
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
    const double near = mean ? sum / divisor : 0;
    // Rounding may make the difference negative.
    const double variance = std::max(squares / divisor - near * near, 0.0);
    const T center = static_cast<T>(pivot + near);
    if (mean) mean[row] = center;
    const T by = inverse[row] = static_cast<T>(c.inverse_of(variance));
    over_row(v, row, [=](int64_t i, int64_t j) {
      const T value = (x[i] - center) * by;
      y[i] = (scale ? value * scale[j] : value) + (shift ? shift[j] : T(0));
    });
  }
}

template <typename T>
void backward_data(const RowNormCase& c, const RowNormParameters& p, const T* x, const T* dy,
                   const RowNormSaved& saved, T* dx) {
  const RowNormView v = c.view;
  const T *scale = p.scale.data<T>(), *mean = saved.mean.data<T>();
  const auto divisor = static_cast<double>(c.divisor());
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < v.rows; ++row) {
    const T inverse = saved.inverse.data<T>()[row];
    // What is read as x is already normalized where it is y.
    const T center = c.backward_reads_y || !mean ? T(0) : mean[row];
    const T by = c.backward_reads_y ? T(1) : inverse;
    double sum, product;
    sum_row<T>(
        v, row,
        [=](int64_t i, int64_t j, T& a, T& b) {
          a = scale ? dy[i] * scale[j] : dy[i];
          b = a * (x[i] - center) * by;
        },
        sum, product);
    const T mean_g = mean ? static_cast<T>(sum / divisor) : T(0);
    const T mean_gx =
        c.divide == RowNormCase::Divide::nothing ? T(0) : static_cast<T>(product / divisor);
    over_row(v, row, [=](int64_t i, int64_t j) {
      const T g = scale ? dy[i] * scale[j] : dy[i];
      dx[i] = inverse * (g - mean_g - (x[i] - center) * by * mean_gx);
    });
  }
}

// The number of pieces of the rows whose sums are added in order; it must not depend on the number
// of threads.
int64_t pieces_of(const RowNormView& v) { return std::clamp<int64_t>(v.rows / v.groups, 1, 64); }

template <typename T>
void parameter_gradients(const RowNormCase& c, const T* x, const T* dy, const RowNormSaved& saved,
                         T* parts) {
  const RowNormView v = c.view;
  const int64_t pieces = pieces_of(v), count = v.parameters(), images = v.rows / v.groups;
#pragma omp parallel for schedule(static)
  for (int64_t piece = 0; piece < pieces; ++piece) {
    T *const scales = parts + piece * 2 * count, *const shifts = scales + count;
    std::fill(scales, scales + 2 * count, T(0));
    const int64_t end = images * (piece + 1) / pieces * v.groups;
    for (int64_t row = images * piece / pieces * v.groups; row < end; ++row) {
      const T center = saved.mean ? saved.mean.data<T>()[row] : T(0),
              by = saved.inverse.data<T>()[row];
      const int64_t begin = v.begin(row), parameter = v.first_parameter(row);
      for (int64_t segment = 0; segment < v.segments; ++segment) {
        const int64_t at = begin + segment * v.segment_stride;
        if (!v.parameter_per_segment) {
#pragma omp simd
          for (int64_t k = 0; k < v.segment; ++k) {
            scales[parameter + k] += dy[at + k] * (x[at + k] - center) * by;
            shifts[parameter + k] += dy[at + k];
          }
          continue;
        }
        T scale = 0, shift = 0;
#pragma omp simd reduction(+ : scale, shift)
        for (int64_t k = 0; k < v.segment; ++k) {
          scale += dy[at + k] * (x[at + k] - center) * by;
          shift += dy[at + k];
        }
        scales[parameter + segment] += scale;
        shifts[parameter + segment] += shift;
      }
    }
  }
}

// Adds up the partial sums of all pieces.
template <typename T>
void finish_parameters(const RowNormView& v, const RowNormGradients& g, const T* parts) {
  const int64_t pieces = pieces_of(v), count = v.parameters();
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

Refusal row_norm_forward_cpu(Context&, const RowNormCase& c, const RowNormParameters& parameters,
                             const Tensor& x, const Tensor& y, const RowNormSaved& saved) {
  on(x, [&]<typename T>() {
    supports_adjacent_groups(c)
        ? forward_adjacent_groups(c, parameters, x.data<T>(), y.data<T>(), saved)
        : forward(c, parameters, x.data<T>(), y.data<T>(), saved);
  });
  return nullptr;
}

Refusal row_norm_backward_cpu(Context&, const RowNormCase& c, const RowNormParameters& parameters,
                              const Tensor& x, const Tensor& dy, const RowNormSaved& saved,
                              const RowNormGradients& gradients, const Tensor& workspace) {
  on(x, [&]<typename T>() {
    const T *from = x.data<T>(), *gradient = dy.data<T>();
    T *const dx = gradients.dx.data<T>(), *const parts = workspace.data<T>();
    const bool learns = gradients.d_scale || gradients.d_shift;
    if (supports_adjacent_groups(c)) {
      backward_adjacent_groups(c, parameters, from, gradient, saved, dx, pieces_of(c.view), parts);
    } else {
      if (learns) parameter_gradients(c, from, gradient, saved, parts);
      if (dx) backward_data(c, parameters, from, gradient, saved, dx);
    }
    if (learns) finish_parameters(c.view, gradients, parts);
  });
  return nullptr;
}

REGISTER_KERNEL(row_norm_forward_kernels, "plain", RunsOn::cpu, 0, row_norm_forward_cpu);
REGISTER_KERNEL(row_norm_backward_kernels, "plain", RunsOn::cpu, 0, row_norm_backward_cpu);

}  // namespace

constinit decltype(row_norm_forward_kernels) row_norm_forward_kernels("row normalization");
constinit decltype(row_norm_backward_kernels) row_norm_backward_kernels(
    "the gradient of row normalization");

RowNormView RowNormView::of_rows(int64_t rows, int64_t length) {
  RowNormView v;
  v.rows = rows;
  v.image_step = v.segment = length;
  return v;
}

RowNormView RowNormView::of_groups(const Shape& shape, const Format& format, int64_t groups) {
  RowNormView v;
  const int64_t channels = shape[1] / groups, positions = shape.count(2);
  v.rows = shape[0] * groups;
  v.groups = groups;
  v.image_step = shape.count(1);
  if (format.order == Order::channels_last && positions > 1) {
    v.group_step = v.segment = channels;
    v.segments = positions;
    v.segment_stride = shape[1];
  } else {
    v.group_step = channels * positions;
    v.segments = channels;
    v.segment = v.segment_stride = positions;
    v.parameter_per_segment = true;
  }
  return v;
}

size_t row_norm_workspace(Context& context, const RowNormView& view) {
  if (context.device() == Device::gpu) return 0;
  return static_cast<size_t>(pieces_of(view) * 2 * view.parameters()) * sizeof(double);
}

void row_norm_forward(Context& context, const RowNormCase& c, const RowNormParameters& parameters,
                      const Tensor& x, const Tensor& y, const RowNormSaved& saved) {
  if (x.count() > 0) row_norm_forward_kernels.run(context, c, parameters, x, y, saved);
}

void row_norm_backward(Context& context, const RowNormCase& c, const RowNormParameters& parameters,
                       const Tensor& x, const Tensor& dy, const RowNormSaved& saved,
                       const RowNormGradients& gradients, const Tensor& workspace) {
  if (x.count() > 0)
    return row_norm_backward_kernels.run(context, c, parameters, x, dy, saved, gradients,
                                         workspace);
  if (gradients.d_scale && !gradients.accumulate_scale) zero(context, gradients.d_scale);
  if (gradients.d_shift && !gradients.accumulate_shift) zero(context, gradients.d_shift);
}

}  // namespace crema

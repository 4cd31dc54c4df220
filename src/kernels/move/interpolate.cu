#include "kernels/move/interpolate.h"

#include <algorithm>
#include <vector>

#include "kernels/core/image_grid.h"
#include "kernels/core/threads.h"
#include "kernels/move/interpolate_taps.h"
#include "kernels/pointwise/pointwise.h"

namespace crema {
namespace {

template <typename T, bool kLast>
struct InterpolateBody {
  using Real = Compute<T>;
  const T* x;
  T* y;
  InterpolationLine<Real> rows, columns;
  ImageGrid<kLast> in, out;
  CREMA_HD Real at(const ImagePosition& position, int64_t h, int64_t w) const {
    return x[in.offset(position, h + rows.start, w + columns.start)];
  }
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const ImagePosition position = out.position(row, column);
    const InterpolationTap<Real> v(rows, static_cast<int>(position.h)),
        u(columns, static_cast<int>(position.w));
    const Real upper =
        (1 - u.part) * at(position, v.first, u.first) + u.part * at(position, v.first, u.second);
    const Real lower =
        (1 - u.part) * at(position, v.second, u.first) + u.part * at(position, v.second, u.second);
    y[out.offset(position, position.h, position.w)] = (1 - v.part) * upper + v.part * lower;
  }
};

template <typename T, bool kLast>
struct GradientBody {
  using Real = Compute<T>;
  const T* dy;
  T* dx;
  InterpolationLine<Real> rows, columns;
  ImageGrid<kLast> in, out;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const ImagePosition position = in.position(row, column);
    const int i = static_cast<int>(position.h) - rows.start,
              j = static_cast<int>(position.w) - columns.start;
    Real sum = 0;
    if (i >= 0 && i < rows.in && j >= 0 && j < columns.in) {
      const InterpolationOutputs<Real> v(rows, i), u(columns, j);
      for (int p = v.begin; p < v.end; ++p) {
        const Real vertical = InterpolationTap<Real>(rows, p).weight(i);
        for (int q = u.begin; q < u.end; ++q) {
          sum += vertical * InterpolationTap<Real>(columns, q).weight(j) *
                 Real(dy[out.offset(position, p, q)]);
        }
      }
    }
    dx[in.offset(position, position.h, position.w)] = sum;
  }
};

// On the CPU each row of dx first sums its rows of dy with their weights, then distributes the sums
// over its columns.
template <typename T>
void gradient_on_cpu(const InterpolationLine<T>& rows, const InterpolationLine<T>& columns,
                     const Tensor& dy, const Tensor& dx) {
  const Shape& x = dx.shape();
  const bool last = dx.format().order == Order::channels_last;
  const int64_t inner = last ? x[1] : 1, lines = last ? x[0] * x[2] : x.count(0, 3);
  const int64_t width = columns.out * inner;
  RegionError error;
#pragma omp parallel
  {
    std::vector<T> sums;
    error.run([&] { sums.resize(width); });
    T* const sum = sums.data();
#pragma omp for schedule(static)
    for (int64_t line = 0; line < lines; ++line) {
      if (!sum) continue;
      T* const to = dx.data<T>() + line * x[3] * inner;
      std::fill(to, to + x[3] * inner, T(0));
      const int i = static_cast<int>(line % x[2]) - rows.start;
      if (i < 0 || i >= rows.in) continue;
      std::fill(sum, sum + width, T(0));
      const InterpolationOutputs<T> outputs(rows, i);
      for (int p = outputs.begin; p < outputs.end; ++p) {
        const T weight = InterpolationTap<T>(rows, p).weight(i);
        const T* const from = dy.data<T>() + (line / x[2] * rows.out + p) * width;
#pragma omp simd
        for (int64_t k = 0; k < width; ++k) sum[k] += weight * from[k];
      }
      for (int q = 0; q < columns.out; ++q) {
        const InterpolationTap<T> tap(columns, q);
        T *const first = to + (columns.start + tap.first) * inner, *const second =
                                                                       to + (columns.start +
                                                                             tap.second) *
                                                                                inner;
        for (int64_t c = 0; c < inner; ++c) first[c] += (1 - tap.part) * sum[q * inner + c];
        for (int64_t c = 0; c < inner; ++c) second[c] += tap.part * sum[q * inner + c];
      }
    }
  }
  error.rethrow();
}

// small and large are x and y or their gradients; `to` is the one that is written.
template <template <typename, bool> class Body>
void run(Context& context, const InterpolationCut& cut, const Tensor& small, const Tensor& large,
         const Tensor& from, const Tensor& to) {
  const Shape &x = small.shape(), &y = large.shape();
  on_real(to, [&]<typename T>() {
    const InterpolationLine<Compute<T>> rows(x[2], cut, y[2]), columns(x[3], cut, y[3]);
    with_order_of(small, [&]<bool kLast>() {
      const ImageGrid<kLast> in(x), out(y);
      const Body<T, kLast> body{from.data<T>(), to.data<T>(), rows, columns, in, out};
      parallel_rows(context, in.rows(to.shape()), in.columns(to.shape()), body);
    });
  });
}

Refusal interpolate_plain(Context& context, const InterpolationCut& cut, const Tensor& x,
                          const Tensor& y) {
  run<InterpolateBody>(context, cut, x, y, x, y);
  return nullptr;
}

Refusal interpolate_gradient_cpu(Context&, const InterpolationCut& cut, const Tensor& dy,
                                 const Tensor& dx) {
  on(dx, [&]<typename T>() {
    const Shape &x = dx.shape(), &y = dy.shape();
    gradient_on_cpu<T>({x[2], cut, y[2]}, {x[3], cut, y[3]}, dy, dx);
  });
  return nullptr;
}

Refusal interpolate_gradient_plain(Context& context, const InterpolationCut& cut, const Tensor& dy,
                                   const Tensor& dx) {
  run<GradientBody>(context, cut, dx, dy, dy, dx);
  return nullptr;
}

REGISTER_KERNEL(interpolate_kernels, "plain", RunsOn::both, 0, interpolate_plain);
REGISTER_KERNEL(interpolate_gradient_kernels, "vectorized", RunsOn::cpu, 10,
                interpolate_gradient_cpu);
REGISTER_KERNEL(interpolate_gradient_kernels, "plain", RunsOn::both, 0, interpolate_gradient_plain);

}  // namespace

constinit decltype(interpolate_kernels) interpolate_kernels("interpolation");
constinit decltype(interpolate_gradient_kernels) interpolate_gradient_kernels(
    "the gradient of interpolation");

void interpolate(Context& context, const InterpolationCut& cut, const Tensor& x, const Tensor& y) {
  interpolate_kernels.run(context, cut, x, y);
}

void interpolate_gradient(Context& context, const InterpolationCut& cut, const Tensor& dy,
                          const Tensor& dx) {
  interpolate_gradient_kernels.run(context, cut, dy, dx);
}

}  // namespace crema

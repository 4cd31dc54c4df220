// Local response normalization on the CPU. Both kinds of neighborhood become sums over a padded
// line in which neighbors are `shift` elements apart, so that one loop supports all layouts and
// runs over contiguous elements.
#include "kernels/norm/lrn.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/ceil_div.h"
#include "kernels/core/kernel_registry.h"
#include "kernels/core/threads.h"
#include "kernels/norm/lrn_geometry.h"
#include "tensor/on.h"

namespace crema {
namespace {

constexpr int64_t kSmall = 1 << 12;  // fewer elements are not worth a second thread

// s^-beta; the usual exponent, 0.75, needs no pow.
struct ThreeQuarters {
  explicit ThreeQuarters(double) {}
  template <typename T>
  T operator()(T s) const {
    const T root = std::sqrt(s);
    return 1 / (root * std::sqrt(root));
  }
};
struct AnyExponent {
  explicit AnyExponent(double beta) : beta(beta) {}
  double beta;
  template <typename T>
  T operator()(T s) const {
    return std::pow(s, static_cast<T>(-beta));
  }
};

// kSize 0: the size is known only at run time.
template <typename T, int kSize, typename Power>
struct Line {
  T alpha, k, gradient_factor;
  int64_t size;
  Power power;

  explicit Line(const LrnWindow& window)
      : alpha(static_cast<T>(window.alpha)),
        k(static_cast<T>(window.k)),
        gradient_factor(static_cast<T>(2 * window.alpha * window.beta)),
        size(window.size),
        power(window.beta) {}

  T sum(const T* at, int64_t shift) const {
    T total = at[0];
    for (int64_t j = 1; j < (kSize ? kSize : size); ++j) total += at[j * shift];
    return total;
  }

  // `squares` is padded: the neighborhood of element i starts at squares[i].
  void forward(const T* squares, int64_t shift, int64_t count, const T* x, T* y) const {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] * power(k + alpha * sum(squares + i, shift));
  }
  void ratio(const T* squares, int64_t shift, int64_t count, const T* x, const T* dy, T* dx,
             T* ratios) const {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const T s = k + alpha * sum(squares + i, shift);
      const T direct = dy[i] * power(s);
      dx[i] = direct;
      ratios[i] = direct * x[i] / s;
    }
  }
  void subtract(const T* ratios, int64_t shift, int64_t count, const T* x, T* dx) const {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) dx[i] -= gradient_factor * x[i] * sum(ratios + i, shift);
  }
};

// Channels-last, one position after the other: the line is the channels of the position.
template <typename T, typename L>
void across_positions(const LrnGeometry& g, const L& line, int64_t positions, const T* x,
                      const T* dy, T* out) {
  const int64_t channels = g.columns.extent, half = g.columns.half;
  RegionError error;
#pragma omp parallel if (positions * channels > kSmall)
  {
    std::vector<T> squares, ratios;
    error.run([&] {
      squares.resize(channels + 2 * half);
      ratios.resize(channels + 2 * half);
    });
#pragma omp for schedule(static)
    for (int64_t position = 0; position < positions; ++position) {
      if (ratios.empty()) continue;
      const T* from = x + position * channels;
      T* to = out + position * channels;
      T* inner = squares.data() + half;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) inner[c] = from[c] * from[c];
      if (!dy) {
        line.forward(squares.data(), 1, channels, from, to);
      } else {
        line.ratio(squares.data(), 1, channels, from, dy + position * channels, to,
                   ratios.data() + half);
        line.subtract(ratios.data(), 1, channels, from, to);
      }
    }
  }
  error.rethrow();
}

// NCHW: blocks of positions; the line is all channels of a block, kBlock elements apart.
template <typename T, typename L>
void across_planes(const LrnGeometry& g, const L& line, int64_t images, const T* x, const T* dy,
                   T* out) {
  constexpr int64_t kBlock = 64;
  const int64_t channels = g.columns.extent, half = g.columns.half, plane = g.columns.stride;
  const int64_t blocks = ceil_div(plane, kBlock);
  RegionError error;
#pragma omp parallel if (images * channels * plane > kSmall)
  {
    std::vector<T> squares, ratios;
    error.run([&] {
      ratios.resize(dy ? (channels + 2 * half) * kBlock : 0);
      squares.resize((channels + 2 * half) * kBlock);
    });
#pragma omp for schedule(static)
    for (int64_t task = 0; task < images * blocks; ++task) {
      if (squares.empty()) continue;
      const int64_t first = task % blocks * kBlock, count = std::min(kBlock, plane - first);
      const int64_t base = task / blocks * channels * plane + first;
      for (int64_t c = 0; c < channels; ++c) {
        const T* from = x + base + c * plane;
        T* to = squares.data() + (c + half) * kBlock;
#pragma omp simd
        for (int64_t i = 0; i < count; ++i) to[i] = from[i] * from[i];
      }
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t at = base + c * plane;
        const T* window = squares.data() + c * kBlock;
        if (!dy) {
          line.forward(window, kBlock, count, x + at, out + at);
        } else {
          line.ratio(window, kBlock, count, x + at, dy + at, out + at,
                     ratios.data() + (c + half) * kBlock);
        }
      }
      for (int64_t c = 0; dy && c < channels; ++c) {
        const int64_t at = base + c * plane;
        line.subtract(ratios.data() + c * kBlock, kBlock, count, x + at, out + at);
      }
    }
  }
  error.rethrow();
}

// Within channels: sums of rows along the columns first, then along the row, whose neighbors are
// columns.stride apart. finish(sums, row start) completes one row.
template <typename T, typename Term, typename Finish>
void within(const LrnGeometry& g, int64_t images, const Term& term, const Finish& finish) {
  const int64_t length = g.columns.extent * g.columns.stride,
                border = g.columns.half * g.columns.stride;
  const int64_t height = g.rows.extent;
  RegionError error;
#pragma omp parallel if (images * height * length > kSmall)
  {
    std::vector<T> sums;
    error.run([&] { sums.resize(length + 2 * border); });
#pragma omp for schedule(static)
    for (int64_t row = 0; row < images * height; ++row) {
      if (sums.empty()) continue;
      T* inner = sums.data() + border;
      const int64_t at = row * length;
      std::fill(inner, inner + length, T(0));
      for (int64_t step = g.rows.before(at); step <= g.rows.after(at); ++step) {
        const int64_t from = at + step * length;
#pragma omp simd
        for (int64_t i = 0; i < length; ++i) inner[i] += term(from + i);
      }
      finish(sums.data(), at);
    }
  }
  error.rethrow();
}

// Forward when dy is null.
template <typename T, typename L>
void run(const LrnWindow& window, const Tensor& tensor, const T* x, const T* dy, T* out,
         T* ratios) {
  const L line(window);
  const LrnGeometry g(window, tensor);
  const int64_t count = tensor.count();
  if (window.across_channels) {
    if (g.columns.stride == 1)
      return across_positions(g, line, count / g.columns.extent, x, dy, out);
    return across_planes(g, line, tensor.shape()[0], x, dy, out);
  }
  const int64_t length = g.columns.extent * g.columns.stride,
                images = count / (g.rows.extent * length);
  const auto square = [x](int64_t i) { return x[i] * x[i]; };
  within<T>(g, images, square, [&](const T* sums, int64_t at) {
    if (!dy) return line.forward(sums, g.columns.stride, length, x + at, out + at);
    line.ratio(sums, g.columns.stride, length, x + at, dy + at, out + at, ratios + at);
  });
  if (!dy) return;
  within<T>(
      g, images, [ratios](int64_t i) { return ratios[i]; },
      [&](const T* sums, int64_t at) {
        line.subtract(sums, g.columns.stride, length, x + at, out + at);
      });
}

template <typename T>
void run(const LrnWindow& window, const Tensor& x, const T* dy, T* out, T* ratios) {
  const T* from = x.data<T>();
  if (window.beta != 0.75) return run<T, Line<T, 0, AnyExponent>>(window, x, from, dy, out, ratios);
  if (window.size == 3) return run<T, Line<T, 3, ThreeQuarters>>(window, x, from, dy, out, ratios);
  if (window.size == 5) return run<T, Line<T, 5, ThreeQuarters>>(window, x, from, dy, out, ratios);
  run<T, Line<T, 0, ThreeQuarters>>(window, x, from, dy, out, ratios);
}

Refusal lrn_forward_vectorized(Context&, const LrnWindow& window, const Tensor& x,
                               const Tensor& y) {
  on(x, [&]<typename T>() { run<T>(window, x, nullptr, y.data<T>(), nullptr); });
  return nullptr;
}

Refusal lrn_backward_vectorized(Context&, const LrnWindow& window, const Tensor& x,
                                const Tensor& dy, const Tensor& dx, const Tensor& ratios) {
  on(x, [&]<typename T>() { run<T>(window, x, dy.data<T>(), dx.data<T>(), ratios.data<T>()); });
  return nullptr;
}

REGISTER_KERNEL(lrn_forward_kernels, "vectorized", RunsOn::cpu, 10, lrn_forward_vectorized);
REGISTER_KERNEL(lrn_backward_kernels, "vectorized", RunsOn::cpu, 10, lrn_backward_vectorized);

}  // namespace

constinit decltype(lrn_forward_kernels) lrn_forward_kernels("LRN");
constinit decltype(lrn_backward_kernels) lrn_backward_kernels("the gradient of LRN");

void lrn_forward(Context& context, const LrnWindow& window, const Tensor& x, const Tensor& y) {
  lrn_forward_kernels.run(context, window, x, y);
}

size_t lrn_workspace(Context& context, const LrnWindow& window, const Shape& x, DType dtype) {
  const bool none =
      context.device() == Device::cpu && window.across_channels && !wants_reference(context);
  return none ? 0 : x.count() * size_of(is_half(dtype) ? DType::f32 : dtype);
}

void lrn_backward(Context& context, const LrnWindow& window, const Tensor& x, const Tensor& dy,
                  const Tensor& dx, const Tensor& workspace) {
  lrn_backward_kernels.run(context, window, x, dy, dx, workspace);
}

}  // namespace crema

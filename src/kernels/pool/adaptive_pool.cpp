// Adaptive pooling on the CPU.
#include <algorithm>

#include "base/ceil_div.h"
#include "kernels/pool/adaptive_windows.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Channels of a slice. A slice is one channel of an image or, in channels-last order,
// up to this many, which are the innermost loops.
constexpr int64_t kTogether = 128;

struct ChannelSlices {
  AdaptiveWindows rows, columns;
  int64_t channels, step, groups;  // step: between pixels in memory

  ChannelSlices(const Tensor& x, const Tensor& y)
      : rows{x.shape()[2], y.shape()[2]}, columns{x.shape()[3], y.shape()[3]} {
    const bool last = x.format().order == Order::channels_last;
    channels = step = last ? x.shape()[1] : 1;
    groups = ceil_div(channels, kTogether);
  }
  int64_t count(const Tensor& x) const { return x.shape()[0] * x.shape()[1] / channels * groups; }
  int64_t width(int64_t slice) const {
    return std::min(kTogether, channels - slice % groups * kTogether);
  }
  int64_t begin(int64_t slice, int64_t positions) const {
    return slice / groups * positions * step + slice % groups * kTogether;
  }
  int64_t begin_x(int64_t slice) const { return begin(slice, rows.in * columns.in); }
  int64_t begin_y(int64_t slice) const { return begin(slice, rows.out * columns.out); }
  int64_t cells(int64_t p, int64_t q) const {
    return (rows.input_end(p) - rows.input_begin(p)) *
           (columns.input_end(q) - columns.input_begin(q));
  }
};

template <typename T>
void pool_slice(const ChannelSlices& s, int64_t slice, bool largest, const T* x, int32_t* position,
                T* y) {
  const int64_t width = s.width(slice), begin = s.begin_x(slice);
  T value[kTogether];  // the maximum, or the sum
  int32_t argmax[kTogether];
  for (int64_t o = 0; o < s.rows.out * s.columns.out; ++o) {
    const int64_t p = o / s.columns.out, q = o % s.columns.out;
    const int64_t first = s.rows.input_begin(p) * s.columns.in + s.columns.input_begin(q);
    std::fill(argmax, argmax + width, static_cast<int32_t>(first));
    for (int64_t c = 0; c < width; ++c) value[c] = largest ? x[begin + first * s.step + c] : T(0);
    for (int64_t h = s.rows.input_begin(p); h < s.rows.input_end(p); ++h) {
      for (int64_t w = s.columns.input_begin(q); w < s.columns.input_end(q); ++w) {
        const auto here = static_cast<int32_t>(h * s.columns.in + w);
        const T* const from = x + begin + here * s.step;
        if (largest) {
#pragma omp simd
          for (int64_t c = 0; c < width; ++c) {
            const bool larger = from[c] > value[c];
            value[c] = larger ? from[c] : value[c];
            argmax[c] = larger ? here : argmax[c];
          }
        } else {
#pragma omp simd
          for (int64_t c = 0; c < width; ++c) value[c] += from[c];
        }
      }
    }
    const int64_t to = s.begin_y(slice) + o * s.step;
    const auto divisor = static_cast<T>(largest ? 1 : s.cells(p, q));
    for (int64_t c = 0; c < width; ++c) y[to + c] = value[c] / divisor;
    if (largest) std::copy(argmax, argmax + width, position + to);
  }
}

template <typename T>
void pool_slice_gradient(const ChannelSlices& s, int64_t slice, bool largest,
                         const int32_t* position, const T* dy, T* dx) {
  const int64_t width = s.width(slice), begin = s.begin_x(slice);
  for (int64_t i = 0; i < s.rows.in * s.columns.in; ++i)
    std::fill(dx + begin + i * s.step, dx + begin + i * s.step + width, T(0));
  for (int64_t o = 0; o < s.rows.out * s.columns.out; ++o) {
    const int64_t from = s.begin_y(slice) + o * s.step;
    if (largest) {
      for (int64_t c = 0; c < width; ++c)
        dx[begin + position[from + c] * s.step + c] += dy[from + c];
      continue;
    }
    const int64_t p = o / s.columns.out, q = o % s.columns.out;
    const auto divisor = static_cast<T>(s.cells(p, q));
    T dy_per_cell[kTogether];
    for (int64_t c = 0; c < width; ++c) dy_per_cell[c] = dy[from + c] / divisor;
    for (int64_t h = s.rows.input_begin(p); h < s.rows.input_end(p); ++h) {
      for (int64_t w = s.columns.input_begin(q); w < s.columns.input_end(q); ++w) {
        T* const to = dx + begin + (h * s.columns.in + w) * s.step;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) to[c] += dy_per_cell[c];
      }
    }
  }
}

Refusal adaptive_pool_cpu(Context&, bool largest, const Tensor& x, const Tensor& position,
                          const Tensor& y) {
  const ChannelSlices slices(x, y);
  on(y, [&]<typename T>() {
#pragma omp parallel for schedule(static)
    for (int64_t slice = 0; slice < slices.count(x); ++slice)
      pool_slice(slices, slice, largest, x.data<T>(), position.data<int32_t>(), y.data<T>());
  });
  return nullptr;
}

Refusal adaptive_pool_gradient_cpu(Context&, bool largest, const Tensor& position, const Tensor& dy,
                                   const Tensor& dx) {
  const ChannelSlices slices(dx, dy);
  on(dx, [&]<typename T>() {
#pragma omp parallel for schedule(static)
    for (int64_t slice = 0; slice < slices.count(dx); ++slice)
      pool_slice_gradient(slices, slice, largest, position.data<int32_t>(), dy.data<T>(),
                          dx.data<T>());
  });
  return nullptr;
}

REGISTER_KERNEL(adaptive_pool_kernels, "plain", RunsOn::cpu, 0, adaptive_pool_cpu);
REGISTER_KERNEL(adaptive_pool_gradient_kernels, "plain", RunsOn::cpu, 0,
                adaptive_pool_gradient_cpu);

}  // namespace

constinit decltype(adaptive_pool_kernels) adaptive_pool_kernels("adaptive pooling");
constinit decltype(adaptive_pool_gradient_kernels) adaptive_pool_gradient_kernels(
    "the gradient of adaptive pooling");

void adaptive_pool(Context& context, bool largest, const Tensor& x, const Tensor& position,
                   const Tensor& y) {
  adaptive_pool_kernels.run(context, largest, x, position, y);
}

void adaptive_pool_gradient(Context& context, bool largest, const Tensor& position,
                            const Tensor& dy, const Tensor& dx) {
  adaptive_pool_gradient_kernels.run(context, largest, position, dy, dx);
}

}  // namespace crema

#include "kernels/pool/adaptive_pool.h"

#include <algorithm>

#include "base/ceil_div.h"
#include "kernels/core/divisor.h"
#include "kernels/core/image_grid.h"
#include "kernels/core/pointwise.h"

namespace crema {
namespace {

// The windows along one axis.
struct Windows {
  int64_t in, out;
  // The inputs of output o: [input_begin, input_end).
  CREMA_HD int64_t input_begin(int64_t o) const { return o * in / out; }
  CREMA_HD int64_t input_end(int64_t o) const { return ((o + 1) * in + out - 1) / out; }
  // The outputs whose windows contain input i: [output_begin, output_end).
  CREMA_HD int64_t output_begin(int64_t i) const { return i * out / in; }
  CREMA_HD int64_t output_end(int64_t i) const { return ((i + 1) * out + in - 1) / in; }
};

// On the CPU: channels of a slice. A slice is one channel of an image or, in channels-last order,
// up to this many, which are the innermost loops.
constexpr int64_t kTogether = 128;

struct ChannelSlices {
  Windows rows, columns;
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

#ifdef CREMA_CUDA
template <typename T, bool kLast>
struct PoolBody {
  using Real = Compute<T>;
  bool largest;
  Windows rows, columns;
  ImageGrid<kLast> in, out;
  const T* x;
  int32_t* position;
  T* y;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const ImagePosition at = out.position(row, column);
    const int64_t top = rows.input_begin(at.h), left = columns.input_begin(at.w),
                  bottom = rows.input_end(at.h), right = columns.input_end(at.w);
    Real maximum = x[in.offset(at, top, left)], sum = 0;
    int64_t argmax = top * in.width + left;
    for (int64_t h = top; h < bottom; ++h) {
      for (int64_t w = left; w < right; ++w) {
        const Real value = x[in.offset(at, h, w)];
        sum += value;
        if (value > maximum) {
          maximum = value;
          argmax = h * in.width + w;
        }
      }
    }
    const int64_t to = out.offset(at, at.h, at.w);
    y[to] = largest ? maximum : sum / static_cast<Real>((bottom - top) * (right - left));
    if (largest) position[to] = static_cast<int32_t>(argmax);
  }
};

template <typename T, bool kLast>
struct GradientBody {
  using Real = Compute<T>;
  bool largest;
  Windows rows, columns;
  ImageGrid<kLast> in, out;
  const int32_t* position;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const ImagePosition at = in.position(row, column);
    const int64_t here = at.h * in.width + at.w;
    Real sum = 0;
    for (int64_t p = rows.output_begin(at.h); p < rows.output_end(at.h); ++p) {
      for (int64_t q = columns.output_begin(at.w); q < columns.output_end(at.w); ++q) {
        const int64_t from = out.offset(at, p, q);
        const int64_t cells = (rows.input_end(p) - rows.input_begin(p)) *
                              (columns.input_end(q) - columns.input_begin(q));
        if (largest) {
          sum += position[from] == here ? Real(dy[from]) : Real(0);
        } else {
          sum += Real(dy[from]) / static_cast<Real>(cells);
        }
      }
    }
    dx[in.offset(at, at.h, at.w)] = sum;
  }
};

// The same on a GPU in channels-last order, for packs of channels and with 32-bit indices.
struct PackWindows {
  Divisor in, out;
  PackWindows(int64_t inputs, int64_t outputs) : in(inputs), out(outputs) {}
  CREMA_HD int input_begin(uint32_t o) const {
    return static_cast<int>(out.quotient(o * in.value));
  }
  CREMA_HD int input_end(uint32_t o) const {
    return static_cast<int>(out.quotient((o + 1) * in.value + out.value - 1));
  }
  CREMA_HD int output_begin(uint32_t i) const {
    return static_cast<int>(in.quotient(i * out.value));
  }
  CREMA_HD int output_end(uint32_t i) const {
    return static_cast<int>(in.quotient((i + 1) * out.value + in.value - 1));
  }
};

template <typename T>
struct PoolPacks {
  static constexpr int kPack = kPackCount<T>;
  bool largest;
  PackWindows rows, columns;
  Divisor packs;
  const WidePack<T>* x;
  int32_t* position;
  WidePack<T>* y;
  CREMA_HD void operator()(int64_t i) const {
    uint32_t pack = static_cast<uint32_t>(i), q = packs.split(pack), p = columns.out.split(q);
    const uint32_t image = rows.out.split(p);
    const int top = rows.input_begin(p), left = columns.input_begin(q), bottom = rows.input_end(p),
              right = columns.input_end(q), width = static_cast<int>(columns.in.value);
    const WidePack<T>* const from =
        x + static_cast<int64_t>(image) * rows.in.value * width * packs.value + pack;
    Compute<T> maximum[kPack], sums[kPack] = {};
    int argmax[kPack];
    for (int k = 0; k < kPack; ++k) {
      maximum[k] = from[(top * width + left) * static_cast<int64_t>(packs.value)].v[k];
      argmax[k] = top * width + left;
    }
    for (int h = top; h < bottom; ++h) {
      for (int w = left; w < right; ++w) {
        const int at = h * width + w;
        const WidePack<T> values = from[at * static_cast<int64_t>(packs.value)];
        for (int k = 0; k < kPack; ++k) {
          const Compute<T> value = values.v[k];
          sums[k] += value;
          const bool larger = value > maximum[k];
          maximum[k] = larger ? value : maximum[k];
          argmax[k] = larger ? at : argmax[k];
        }
      }
    }
    const auto cells = static_cast<Compute<T>>((bottom - top) * (right - left));
    WidePack<T> out;
    for (int k = 0; k < kPack; ++k) out.v[k] = largest ? maximum[k] : sums[k] / cells;
    y[i] = out;
    for (int k = 0; k < kPack && largest; ++k) position[i * kPack + k] = argmax[k];
  }
};

template <typename T>
struct GradientPacks {
  static constexpr int kPack = kPackCount<T>;
  bool largest;
  PackWindows rows, columns;
  Divisor packs;
  const int32_t* position;
  const WidePack<T>* dy;
  WidePack<T>* dx;
  CREMA_HD void operator()(int64_t i) const {
    uint32_t pack = static_cast<uint32_t>(i), w = packs.split(pack), h = columns.in.split(w);
    const uint32_t image = rows.in.split(h);
    const int here = static_cast<int>(h * columns.in.value + w);
    Compute<T> sums[kPack] = {};
    const int bottom = rows.output_end(h), right = columns.output_end(w);
    for (int p = rows.output_begin(h); p < bottom; ++p) {
      const int high = rows.input_end(p) - rows.input_begin(p);
      for (int q = columns.output_begin(w); q < right; ++q) {
        const int cells = high * (columns.input_end(q) - columns.input_begin(q));
        const int64_t from =
            ((static_cast<int64_t>(image) * rows.out.value + p) * columns.out.value + q) *
                packs.value +
            pack;
        const WidePack<T> given = dy[from];
        for (int k = 0; k < kPack; ++k) {
          const Compute<T> gradient = given.v[k];
          if (largest) {
            sums[k] += position[from * kPack + k] == here ? gradient : Compute<T>(0);
          } else {
            sums[k] += gradient / static_cast<Compute<T>>(cells);
          }
        }
      }
    }
    WidePack<T> out;
    for (int k = 0; k < kPack; ++k) out.v[k] = sums[k];
    dx[i] = out;
  }
};

// x: the input or its gradient, y: the pooled output.
template <typename T>
bool in_packs(const Tensor& x, const Tensor& y) {
  const Shape &in = x.shape(), &out = y.shape();
  const bool small = std::max(x.count(), y.count()) < Divisor::kMax &&
                     (in[2] + 1) * (out[2] + 1) < Divisor::kMax &&
                     (in[3] + 1) * (out[3] + 1) < Divisor::kMax;
  return x.format().order == Order::channels_last && small &&
         takes_packs<T>(in[1], x.raw(), y.raw());
}

void pool_on_gpu(Context& context, bool largest, const Tensor& x, const Tensor& position,
                 const Tensor& y) {
  on_real(y, [&]<typename T>() {
    if (in_packs<T>(x, y)) {
      const Shape &in = x.shape(), &out = y.shape();
      const PoolPacks<T> body{largest,
                              PackWindows(in[2], out[2]),
                              PackWindows(in[3], out[3]),
                              Divisor(in[1] / kPackCount<T>),
                              x.data<WidePack<T>>(),
                              position.data<int32_t>(),
                              y.data<WidePack<T>>()};
      return parallel_for(context, y.count() / kPackCount<T>, body);
    }
    with_order_of(x, [&]<bool kLast>() {
      const ImageGrid<kLast> in(x.shape()), out(y.shape());
      parallel_rows(context, out.rows(y.shape()), out.columns(y.shape()),
                    PoolBody<T, kLast>{largest,
                                       {in.height, out.height},
                                       {in.width, out.width},
                                       in,
                                       out,
                                       x.data<T>(),
                                       position.data<int32_t>(),
                                       y.data<T>()});
    });
  });
}

void gradient_on_gpu(Context& context, bool largest, const Tensor& position, const Tensor& dy,
                     const Tensor& dx) {
  on_real(dx, [&]<typename T>() {
    if (in_packs<T>(dx, dy)) {
      const Shape &in = dx.shape(), &out = dy.shape();
      const GradientPacks<T> body{largest,
                                  PackWindows(in[2], out[2]),
                                  PackWindows(in[3], out[3]),
                                  Divisor(in[1] / kPackCount<T>),
                                  position.data<int32_t>(),
                                  dy.data<WidePack<T>>(),
                                  dx.data<WidePack<T>>()};
      return parallel_for(context, dx.count() / kPackCount<T>, body);
    }
    with_order_of(dx, [&]<bool kLast>() {
      const ImageGrid<kLast> in(dx.shape()), out(dy.shape());
      parallel_rows(context, in.rows(dx.shape()), in.columns(dx.shape()),
                    GradientBody<T, kLast>{largest,
                                           {in.height, out.height},
                                           {in.width, out.width},
                                           in,
                                           out,
                                           position.data<int32_t>(),
                                           dy.data<T>(),
                                           dx.data<T>()});
    });
  });
}

#endif

}  // namespace

void adaptive_pool(Context& context, bool largest, const Tensor& x, const Tensor& position,
                   const Tensor& y) {
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu) return pool_on_gpu(context, largest, x, position, y);
#endif
  (void)context;
  const ChannelSlices slices(x, y);
  on(y, [&]<typename T>() {
#pragma omp parallel for schedule(static)
    for (int64_t slice = 0; slice < slices.count(x); ++slice)
      pool_slice(slices, slice, largest, x.data<T>(), position.data<int32_t>(), y.data<T>());
  });
}

void adaptive_pool_gradient(Context& context, bool largest, const Tensor& position,
                            const Tensor& dy, const Tensor& dx) {
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu) return gradient_on_gpu(context, largest, position, dy, dx);
#endif
  (void)context;
  const ChannelSlices slices(dx, dy);
  on(dx, [&]<typename T>() {
#pragma omp parallel for schedule(static)
    for (int64_t slice = 0; slice < slices.count(dx); ++slice)
      pool_slice_gradient(slices, slice, largest, position.data<int32_t>(), dy.data<T>(),
                          dx.data<T>());
  });
}

}  // namespace crema

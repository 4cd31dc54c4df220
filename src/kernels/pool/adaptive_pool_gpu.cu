// Adaptive pooling on a GPU: a thread has one element, or a pack of channels.
#include <algorithm>

#include "device/parallel.h"
#include "kernels/core/divisor.h"
#include "kernels/core/image_grid.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pool/adaptive_windows.h"

namespace crema {
namespace {

template <typename T, bool kLast>
struct AdaptivePoolBody {
  using Real = Compute<T>;
  bool largest;
  AdaptiveWindows rows, columns;
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
struct AdaptiveGradientBody {
  using Real = Compute<T>;
  bool largest;
  AdaptiveWindows rows, columns;
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

// The same in channels-last order, for packs of channels and with 32-bit indices.
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

Refusal adaptive_pool_gpu(Context& context, bool largest, const Tensor& x, const Tensor& position,
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
                    AdaptivePoolBody<T, kLast>{largest,
                                               {in.height, out.height},
                                               {in.width, out.width},
                                               in,
                                               out,
                                               x.data<T>(),
                                               position.data<int32_t>(),
                                               y.data<T>()});
    });
  });
  return nullptr;
}

Refusal adaptive_pool_gradient_gpu(Context& context, bool largest, const Tensor& position,
                                   const Tensor& dy, const Tensor& dx) {
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
                    AdaptiveGradientBody<T, kLast>{largest,
                                                   {in.height, out.height},
                                                   {in.width, out.width},
                                                   in,
                                                   out,
                                                   position.data<int32_t>(),
                                                   dy.data<T>(),
                                                   dx.data<T>()});
    });
  });
  return nullptr;
}

REGISTER_KERNEL(adaptive_pool_kernels, "cuda", RunsOn::gpu, 10, adaptive_pool_gpu);
REGISTER_KERNEL(adaptive_pool_gradient_kernels, "cuda", RunsOn::gpu, 10,
                adaptive_pool_gradient_gpu);

}  // namespace
}  // namespace crema

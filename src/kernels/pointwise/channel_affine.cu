// Element-wise operations with one value per channel: the top of BatchNorm, Scale and Bias, and the
// bottom gradient of BatchNorm and Scale.
#include <algorithm>

#include "base/ceil_div.h"
#include "device/parallel.h"
#include "kernels/pointwise/channel_narrow.h"
#include "kernels/pointwise/channel_terms.h"

namespace crema {
namespace {

// A row of a row-major tensor is one channel of one image; a row of a channels-last tensor is all
// channels of one position.
struct Rows {
  int64_t rows, columns, outer, channels;
  bool columns_are_channels;

  explicit Rows(const ChannelView& view)
      : outer(view.outer), channels(view.channels), columns_are_channels(view.inner == 1) {
    rows = view.groups * view.outer * (columns_are_channels ? 1 : view.channels);
    columns = columns_are_channels ? view.channels : view.inner;
  }
  // The index of a row's first per-channel value.
  CREMA_HD int64_t value(int64_t row) const {
    if (columns_are_channels) return row / outer * channels;
    return row / (outer * channels) * channels + row % channels;
  }
};

// The bodies process one row: from() advances their pointers to its start; c is 0 if the row is one
// channel.
template <typename T, bool kCenter, bool kFactor, bool kShift, bool kAdded, bool kRelu>
struct Affine {
  const T *center, *factor, *shift, *added, *x;
  T* y;
  T slope;

  CREMA_HD Affine from(int64_t i, int64_t c) const {
    return {kCenter ? center + c : nullptr,
            kFactor ? factor + c : nullptr,
            kShift ? shift + c : nullptr,
            kAdded ? added + i : nullptr,
            x + i,
            y + i,
            slope};
  }
  CREMA_HD void operator()(int64_t i, int64_t c) const {
    T value = x[i];
    if constexpr (kCenter) value -= center[c];
    if constexpr (kFactor) value *= factor[c];
    if constexpr (kShift) value += shift[c];
    if constexpr (kAdded) value += added[i];
    if constexpr (kRelu) value = value > 0 ? value : slope * value;
    y[i] = value;
  }
};

template <typename T, typename Term, bool kStatistics>
struct Gradient {
  Term term;
  const T *factor, *x_factor, *constant;
  T* dx;

  CREMA_HD Gradient from(int64_t i, int64_t c) const {
    return {term.from(i, c), factor + c, kStatistics ? x_factor + c : nullptr,
            kStatistics ? constant + c : nullptr, dx + i};
  }
  CREMA_HD void operator()(int64_t i, int64_t c) const {
    T g, h;
    term(i, c, g, h);
    dx[i] =
        kStatistics ? element_gradient(factor[c], g, h, x_factor[c], constant[c]) : factor[c] * g;
  }
};

#ifdef __CUDACC__
template <typename Body>
__global__ void run_elements(Rows r, Body body) {
  const int64_t count = r.rows * r.columns, stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    body(i, r.value(i / r.columns) + (r.columns_are_channels ? i % r.columns : 0));
  }
}
#endif

// Calls body for every element.
template <typename Body>
void over_elements(Context& context, const ChannelView& view, const Body& body) {
  const Rows r(view);
  if (view.count() == 0) return;
#ifdef __CUDACC__
  if (context.device() == Device::gpu) {
    const int64_t blocks = std::min<int64_t>(ceil_div(view.count(), 256), 65536);
    return launch(context.gpu(), run_elements<Body>, {static_cast<unsigned>(blocks), 256}, r, body);
  }
#endif
  (void)context;
  constexpr int64_t kPiece = 8192;  // long rows are split, so that a few of them use all threads
  const int64_t pieces = ceil_div(r.columns, kPiece);
#pragma omp parallel for schedule(static) if (view.count() > 1 << 14)
  for (int64_t task = 0; task < r.rows * pieces; ++task) {
    const int64_t row = task / pieces, first = task % pieces * kPiece,
                  count = std::min(r.columns - first, kPiece);
    const Body line =
        body.from(row * r.columns + first, r.value(row) + (r.columns_are_channels ? first : 0));
    if (r.columns_are_channels) {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) line(i, i);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i) line(i, 0);
    }
  }
}

template <typename T>
struct StoreSums {
  const double* sums;
  T* out;
  bool accumulate;
  CREMA_HD void operator()(int64_t i) const {
    out[i] = accumulate ? out[i] + static_cast<T>(sums[i]) : static_cast<T>(sums[i]);
  }
};

template <typename T, bool kCenter, bool kFactor, bool kShift, bool kAdded = false,
          bool kRelu = false>
void run_affine(Context& context, const ChannelView& view, const ChannelAffine& a, const Tensor& x,
                const Tensor& y) {
  over_elements(context, view,
                Affine<T, kCenter, kFactor, kShift, kAdded, kRelu>{
                    a.center.data<T>(), a.factor.data<T>(), a.shift.data<T>(), a.added.data<T>(),
                    x.data<T>(), y.data<T>(), a.slope});
}

}  // namespace

ChannelView ChannelView::of(const Shape& shape, const Format& format) {
  if (shape.axes() < 2 || shape[1] == 1) return {1, 1, 1, shape.count()};
  if (same_layout(format, Format::row_major(), shape))
    return {1, shape[0], shape[1], shape.count(2)};
  return {1, shape[0] * shape.count(2), shape[1], 1};
}

void channel_affine(Context& context, const ChannelView& view, const ChannelAffine& a,
                    const Tensor& x, const Tensor& y) {
  if (NarrowChannels::helps(context, view)) {
    const NarrowChannels narrow(view);
    ChannelAffine part = a;
    part.added = narrow.tail(a.added);
    if (narrow.rest.outer > 0)
      channel_affine(context, narrow.rest, part, narrow.tail(x), narrow.tail(y));
    part.added = a.added;
    for (Tensor* values : {&part.center, &part.factor, &part.shift})
      *values = narrow.repeated(context, *values);
    return channel_affine(context, narrow.wide, part, x, y);
  }
  on(x, [&]<typename T>() {
    if (a.center) {
      if (a.relu) {
        a.added ? run_affine<T, true, true, true, true, true>(context, view, a, x, y)
                : run_affine<T, true, true, true, false, true>(context, view, a, x, y);
      } else {
        a.added ? run_affine<T, true, true, true, true>(context, view, a, x, y)
                : run_affine<T, true, true, true>(context, view, a, x, y);
      }
    } else if (a.factor) {
      a.shift ? run_affine<T, false, true, true>(context, view, a, x, y)
              : run_affine<T, false, true, false>(context, view, a, x, y);
    } else {
      run_affine<T, false, false, true>(context, view, a, x, y);
    }
  });
}

void channel_gradient(Context& context, const ChannelView& view, const ChannelTerm& of,
                      const Tensor& x_factor, const Tensor& constant, const Tensor& dx) {
  if (NarrowChannels::helps(context, view)) {
    const NarrowChannels narrow(view);
    if (narrow.rest.outer > 0) {
      channel_gradient(context, narrow.rest, narrow.rest_term(of), x_factor, constant,
                       narrow.tail(dx));
    }
    return channel_gradient(context, narrow.wide, narrow.wide_term(context, of),
                            narrow.repeated(context, x_factor), narrow.repeated(context, constant),
                            dx);
  }
  on(dx, [&]<typename T>() {
    with_term<T>(of, {}, [&]<typename Term>(const Term& term) {
      const T *factor = of.factor.data<T>(), *x_factors = x_factor.data<T>(),
              *constants = constant.data<T>();
      T* to = dx.data<T>();
      x_factor ? over_elements(context, view,
                               Gradient<T, Term, true>{term, factor, x_factors, constants, to})
               : over_elements(context, view,
                               Gradient<T, Term, false>{term, factor, x_factors, constants, to});
    });
  });
}

void store_sums(Context& context, const double* sums, const Tensor& out, bool accumulate) {
  on(out, [&]<typename T>() {
    parallel_for(context, out.count(), StoreSums<T>{sums, out.data<T>(), accumulate});
  });
}

}  // namespace crema

// The reference implementation of pooling: one index per element, one source for GPU and CPU, every
// method, layout and dtype.
#include <cfloat>

#include "device/parallel.h"
#include "kernels/pool/pool_geometry.h"
#include "kernels/pool/pool_kernels.h"
#include "tensor/on.h"

namespace crema {
namespace {

// The coordinates of an element of the input or the output.
struct VoxelPosition {
  int64_t image, channel, at[3];

  CREMA_HD VoxelPosition(const PoolGeometry& g, const int64_t* extent, int64_t i) {
    if (g.channels_last) {
      channel = i % g.channels;
      i /= g.channels;
    }
    for (int axis = 2; axis >= 0; --axis) {
      at[axis] = i % extent[axis];
      i /= extent[axis];
    }
    if (!g.channels_last) {
      channel = i % g.channels;
      i /= g.channels;
    }
    image = i;
  }
};

CREMA_HD int64_t offset(const PoolGeometry& g, const int64_t* extent, const VoxelPosition& p,
                        int64_t d, int64_t h, int64_t w) {
  const int64_t plane = (d * extent[1] + h) * extent[2] + w;
  if (g.channels_last)
    return (p.image * extent[0] * extent[1] * extent[2] + plane) * g.channels + p.channel;
  return (p.image * g.channels + p.channel) * extent[0] * extent[1] * extent[2] + plane;
}

// Calls visit(value, d, h, w) for each cell of output o's window in scan order, until it returns
// stop.
template <typename T, typename Visit>
CREMA_HD void scan(const PoolGeometry& g, const T* x, const VoxelPosition& o, Visit& visit) {
  for (int64_t d = g.input_begin(0, o.at[0]); d < g.input_end(0, o.at[0]); ++d) {
    for (int64_t h = g.input_begin(1, o.at[1]); h < g.input_end(1, o.at[1]); ++h) {
      for (int64_t w = g.input_begin(2, o.at[2]); w < g.input_end(2, o.at[2]); ++w) {
        if (!visit(Compute<T>(x[offset(g, g.in, o, d, h, w)]), d, h, w)) return;
      }
    }
  }
}

template <typename T>
struct Sum {
  T sum = 0;
  CREMA_HD bool operator()(T x, int64_t, int64_t, int64_t) {
    sum += x;
    return true;
  }
};

template <typename T>
struct Squares {
  T sum = 0, squares = 0;
  CREMA_HD bool operator()(T x, int64_t, int64_t, int64_t) {
    sum += x;
    squares += x * x;
    return true;
  }
};

// The selected cell of a window: its value and coordinates.
template <typename T>
struct SelectedCell {
  T value;
  bool any = false;
  int64_t d = 0, h = 0, w = 0;
  CREMA_HD void select(T x, int64_t cell_d, int64_t cell_h, int64_t cell_w) {
    value = x;
    any = true;
    d = cell_d;
    h = cell_h;
    w = cell_w;
  }
};

template <typename T>
struct Largest : SelectedCell<T> {
  CREMA_HD bool operator()(T x, int64_t d, int64_t h, int64_t w) {
    if (x > this->value) this->select(x, d, h, w);
    return true;
  }
};

// Stops where the running sum reaches the random threshold; selects the last cell when, due to
// rounding, none reaches it.
template <typename T>
struct Drawn : SelectedCell<T> {
  T threshold, sum = 0;
  CREMA_HD bool operator()(T x, int64_t d, int64_t h, int64_t w) {
    sum += x;
    this->select(x, d, h, w);
    return sum < threshold;
  }
};

template <typename T, typename Index>
struct PoolForward {
  PoolGeometry g;
  PoolMethod method;
  PassRandom random;
  int64_t first_image;
  const T* x;
  T* y;
  Index* index;
  T* mask;
  bool only_positive, relu_after;

  CREMA_HD void operator()(int64_t i) const {
    using C = Compute<T>;
    const VoxelPosition o(g, g.out, i);
    if (method == PoolMethod::average) {
      Sum<C> all;
      scan(g, x, o, all);
      y[i] = all.sum / static_cast<Compute<T>>(g.divisor(o.at[0], o.at[1], o.at[2]));
    } else if (method == PoolMethod::stochastic_test) {
      Squares<C> all;
      scan(g, x, o, all);
      y[i] = all.sum > 0 ? all.squares / all.sum : Compute<T>(0);
    } else if (method == PoolMethod::max) {
      Largest<C> largest;
      largest.value = -FLT_MAX;
      scan(g, x, o, largest);
      finish(i, o, largest);
    } else {
      Sum<C> all;
      scan(g, x, o, all);
      Drawn<C> drawn;
      drawn.value = 0;
      // The random number belongs to the logical element, whatever the order in memory.
      const int64_t plane = (o.at[0] * g.out[1] + o.at[1]) * g.out[2] + o.at[2];
      const int64_t logical =
          ((first_image + o.image) * g.channels + o.channel) * g.out[0] * g.out[1] * g.out[2] +
          plane;
      drawn.threshold = random.get().uniform(logical) * all.sum;
      scan(g, x, o, drawn);
      finish(i, o, drawn);
    }
  }

  CREMA_HD void finish(int64_t i, const VoxelPosition& o,
                       const SelectedCell<Compute<T>>& selected) const {
    y[i] = relu_after && selected.value <= 0 ? Compute<T>(0) : selected.value;
    if (index) {
      const int64_t cell = (g.offset_in_window(0, o.at[0], selected.d) * g.kernel[1] +
                            g.offset_in_window(1, o.at[1], selected.h)) *
                               g.kernel[2] +
                           g.offset_in_window(2, o.at[2], selected.w);
      const bool gives = selected.any && (!only_positive || selected.value > 0);
      index[i] = gives ? static_cast<Index>(cell) : static_cast<Index>(-1);
    }
    if (mask)
      mask[i] =
          selected.any
              ? static_cast<Compute<T>>((selected.d * g.in[1] + selected.h) * g.in[2] + selected.w)
              : Compute<T>(-1);
  }
};

// One input element gathers the gradients of the outputs whose windows contain it.
template <typename T, typename Index>
struct PoolBackward {
  PoolGeometry g;
  PoolMethod method;
  const T* x;
  const Index* index;
  const T* dy;
  T* dx;

  CREMA_HD void operator()(int64_t i) const {
    const VoxelPosition p(g, g.in, i);
    Compute<T> sum = 0;
    for (int64_t d = g.output_begin(0, p.at[0]); d < g.output_end(0, p.at[0]); ++d) {
      for (int64_t h = g.output_begin(1, p.at[1]); h < g.output_end(1, p.at[1]); ++h) {
        for (int64_t w = g.output_begin(2, p.at[2]); w < g.output_end(2, p.at[2]); ++w)
          sum += gradient_from(i, p, d, h, w);
      }
    }
    dx[i] = sum;
  }

  CREMA_HD Compute<T> gradient_from(int64_t i, const VoxelPosition& p, int64_t d, int64_t h,
                                    int64_t w) const {
    using C = Compute<T>;
    const int64_t o = offset(g, g.out, p, d, h, w);
    if (method == PoolMethod::average) return dy[o] / static_cast<Compute<T>>(g.divisor(d, h, w));
    if (method == PoolMethod::stochastic_test) {
      VoxelPosition window = p;
      window.at[0] = d;
      window.at[1] = h;
      window.at[2] = w;
      Squares<C> all;
      scan(g, x, window, all);
      return all.sum > 0 ? dy[o] * (2 * C(x[i]) - all.squares / all.sum) / all.sum : Compute<T>(0);
    }
    const int64_t cell =
        (g.offset_in_window(0, d, p.at[0]) * g.kernel[1] + g.offset_in_window(1, h, p.at[1])) *
            g.kernel[2] +
        g.offset_in_window(2, w, p.at[2]);
    return index[o] == static_cast<Index>(cell) ? C(dy[o]) : Compute<T>(0);
  }
};

Refusal pool_forward_plain(Context& context, const PoolWindow& window, const PassRandom& random,
                           const Tensor& x, const Tensor& y, const Tensor& index,
                           const Tensor& mask) {
  const PoolGeometry g(window, x, y);
  on_real(x, [&]<typename T>() {
    const auto run = [&]<typename Index>() {
      parallel_for(context, y.count(),
                   PoolForward<T, Index>{g, window.method, random, window.first_image, x.data<T>(),
                                         y.data<T>(), index.data<Index>(), mask.data<T>(),
                                         window.only_positive(), window.relu_after},
                   256);
    };
    window.index_dtype() == DType::u8 ? run.template operator()<uint8_t>()
                                      : run.template operator()<int32_t>();
  });
  return nullptr;
}

Refusal pool_backward_plain(Context& context, const PoolWindow& window, const Tensor& x,
                            const Tensor& index, const Tensor& dy, const Tensor& dx) {
  const PoolGeometry g(window, dx, dy);
  on_real(dy, [&]<typename T>() {
    const auto run = [&]<typename Index>() {
      parallel_for(context, dx.count(),
                   PoolBackward<T, Index>{g, window.method, x.data<T>(), index.data<Index>(),
                                          dy.data<T>(), dx.data<T>()},
                   256);
    };
    window.index_dtype() == DType::u8 ? run.template operator()<uint8_t>()
                                      : run.template operator()<int32_t>();
  });
  return nullptr;
}

REGISTER_KERNEL(pool_forward_kernels, "plain", RunsOn::both, 0, pool_forward_plain);
REGISTER_KERNEL(pool_backward_kernels, "plain", RunsOn::both, 0, pool_backward_plain);

}  // namespace

PoolGeometry::PoolGeometry(const PoolWindow& window, const Tensor& x, const Tensor& y)
    : images(x.shape()[0]), channels(x.shape()[1]), count_padding(window.count_padding) {
  // With one channel or one pixel, both layouts of a tensor are the same; the other tensor then
  // decides.
  const auto plain = [](const Tensor& t) {
    return same_layout(t.format(), Format::row_major(), t.shape());
  };
  channels_last = !plain(x) || !plain(y);
  const int lacking = 5 - x.shape().axes();
  for (int axis = 0; axis < 3; ++axis) {
    in[axis] = axis < lacking ? 1 : x.shape()[2 + axis - lacking];
    out[axis] = axis < lacking ? 1 : y.shape()[2 + axis - lacking];
    kernel[axis] = window.kernel[axis];
    stride[axis] = window.stride[axis];
    pad[axis] = window.pad[axis];
  }
}

}  // namespace crema

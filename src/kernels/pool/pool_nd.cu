// The reference: one index per element of the result. Forward loops over the output's window,
// backward over the windows that contain the input.
#include "kernels/pool/pool_nd.h"

#include <cfloat>

#include "device/parallel.h"
#include "kernels/core/axes.h"
#include "kernels/pool/counted_cells.h"
#include "tensor/on.h"

namespace crema {
namespace {

struct Geometry {
  int axes;
  int64_t channels;
  int64_t in[kMaxSpatialAxes], out[kMaxSpatialAxes], kernel[kMaxSpatialAxes];
  int64_t stride[kMaxSpatialAxes], pad[kMaxSpatialAxes], dilation[kMaxSpatialAxes];
  bool count_padding, average;
  AxisStrides xs, ys;

  Geometry(const PoolNd& window, bool mean, const Tensor& x, const Tensor& y)
      : axes(x.shape().axes() - 2),
        channels(x.shape()[1]),
        count_padding(window.count_padding),
        average(mean),
        xs(strides_of(x.shape(), x.format().order)),
        ys(strides_of(y.shape(), y.format().order)) {
    for (int axis = 0; axis < axes; ++axis) {
      in[axis] = x.shape()[axis + 2];
      out[axis] = y.shape()[axis + 2];
      kernel[axis] = window.kernel[axis];
      stride[axis] = window.stride[axis];
      pad[axis] = window.pad[axis];
      dilation[axis] = window.dilation[axis];
    }
  }

  CREMA_HD int64_t counted(int axis, int64_t o) const {
    return counted_cells(o * stride[axis] - pad[axis], kernel[axis], in[axis], pad[axis],
                         count_padding, dilation[axis]);
  }
};

template <typename T>
struct PoolNdForward {
  Geometry g;
  const T* x;
  T* y;
  int32_t* index;
  T* mask;

  CREMA_HD void operator()(int64_t i) const {
    const AxisPosition o = position_of(i, g.axes, g.out, g.channels);
    int64_t cell[kMaxSpatialAxes] = {};
    Compute<T> sum = 0, largest = -FLT_MAX;
    int64_t argmax = -1;
    bool any = false;  // cell inside x; the mean of NaN or -inf cells has no argmax
    do {
      int64_t from = o.outer * g.xs.outer + o.channel * g.xs.channel, position = 0;
      bool inside = true;
      for (int axis = 0; axis < g.axes; ++axis) {
        const int64_t at =
            o.at[axis] * g.stride[axis] - g.pad[axis] + cell[axis] * g.dilation[axis];
        inside = inside && at >= 0 && at < g.in[axis];
        from += at * g.xs.axis[axis];
        position = position * g.in[axis] + at;
      }
      if (!inside) continue;
      const auto value = Compute<T>(x[from]);
      any = true;
      sum += value;
      if (value > largest) {
        largest = value;
        argmax = position;
      }
    } while (next_position(cell, g.kernel, g.axes));
    const int64_t to = offset_of(o, g.ys, g.axes);
    if (g.average) {
      int64_t divisor = 1;
      for (int axis = 0; axis < g.axes; ++axis) divisor *= g.counted(axis, o.at[axis]);
      y[to] = any ? sum / static_cast<Compute<T>>(divisor) : Compute<T>(0);
      return;
    }
    y[to] = largest;
    if (index) index[to] = static_cast<int32_t>(argmax);
    if (mask) mask[to] = static_cast<Compute<T>>(argmax);
  }
};

template <typename T>
struct PoolNdBackward {
  Geometry g;
  const int32_t* index;
  const T* dy;
  T* dx;

  CREMA_HD void operator()(int64_t i) const {
    const AxisPosition p = position_of(i, g.axes, g.in, g.channels);
    int64_t position = 0;
    for (int axis = 0; axis < g.axes; ++axis) position = position * g.in[axis] + p.at[axis];
    int64_t cell[kMaxSpatialAxes] = {};
    Compute<T> sum = 0;
    do {
      int64_t from = p.outer * g.ys.outer + p.channel * g.ys.channel, divisor = 1;
      bool inside = true;
      for (int axis = 0; axis < g.axes; ++axis) {
        const int64_t at = p.at[axis] + g.pad[axis] - cell[axis] * g.dilation[axis];
        const int64_t o = at / g.stride[axis];
        inside = inside && at >= 0 && at % g.stride[axis] == 0 && o < g.out[axis];
        from += o * g.ys.axis[axis];
        divisor *= g.counted(axis, o);
      }
      if (!inside) continue;
      if (g.average)
        sum += dy[from] / static_cast<Compute<T>>(divisor);
      else if (index[from] == position)
        sum += Compute<T>(dy[from]);
    } while (next_position(cell, g.kernel, g.axes));
    dx[offset_of(p, g.xs, g.axes)] = sum;
  }
};

Refusal pool_nd_forward_plain(Context& context, const PoolNd& window, bool average, const Tensor& x,
                              const Tensor& y, const Tensor& index, const Tensor& mask) {
  const Geometry g(window, average, x, y);
  on_real(x, [&]<typename T>() {
    parallel_for(
        context, y.count(),
        PoolNdForward<T>{g, x.data<T>(), y.data<T>(), index.data<int32_t>(), mask.data<T>()});
  });
  return nullptr;
}

Refusal pool_nd_backward_plain(Context& context, const PoolNd& window, bool average,
                               const Tensor& index, const Tensor& dy, const Tensor& dx) {
  const Geometry g(window, average, dx, dy);
  on_real(dy, [&]<typename T>() {
    parallel_for(context, dx.count(),
                 PoolNdBackward<T>{g, index.data<int32_t>(), dy.data<T>(), dx.data<T>()});
  });
  return nullptr;
}

REGISTER_KERNEL(pool_nd_forward_kernels, "plain", RunsOn::both, 0, pool_nd_forward_plain);
REGISTER_KERNEL(pool_nd_backward_kernels, "plain", RunsOn::both, 0, pool_nd_backward_plain);

}  // namespace

constinit decltype(pool_nd_forward_kernels) pool_nd_forward_kernels("dilated pooling");
constinit decltype(pool_nd_backward_kernels) pool_nd_backward_kernels(
    "the gradient of dilated pooling");

void pool_nd_forward(Context& context, const PoolNd& window, bool average, const Tensor& x,
                     const Tensor& y, const Tensor& index, const Tensor& mask) {
  pool_nd_forward_kernels.run(context, window, average, x, y, index, mask);
}

void pool_nd_backward(Context& context, const PoolNd& window, bool average, const Tensor& index,
                      const Tensor& dy, const Tensor& dx) {
  pool_nd_backward_kernels.run(context, window, average, index, dy, dx);
}

}  // namespace crema

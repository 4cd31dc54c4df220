// The reference convolution: for any number of spatial axes, groups and orders, on both devices.
// One thread per element of the result, so no element is written twice and the sums do not depend
// on the number of threads.
#include "device/parallel.h"
#include "kernels/conv/conv_geometry.h"
#include "kernels/core/axes.h"
#include "kernels/pointwise/bias.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
struct ConvForward {
  ConvGeometry g;
  AxisStrides xs, ws, ys;
  const T* x;
  const T* w;
  const T* b;
  T* y;

  CREMA_HD void operator()(int64_t i) const {
    const AxisPosition out = position_of(i, g.axes, g.out, g.all_out_channels());
    const int64_t first =
        out.channel / g.out_channels * g.in_channels;  // first input channel of this group
    int64_t tap[kMaxSpatialAxes] = {};
    T sum = b ? b[out.channel] : T(0);
    do {
      int64_t from = out.outer * xs.outer + first * xs.channel, weight = out.channel * ws.outer;
      bool inside = true;
      for (int axis = 0; axis < g.axes; ++axis) {
        const int64_t at =
            out.at[axis] * g.stride[axis] - g.pad[axis] + tap[axis] * g.dilation[axis];
        inside = inside && at >= 0 && at < g.in[axis];
        from += at * xs.axis[axis];
        weight += tap[axis] * ws.axis[axis];
      }
      if (!inside) continue;
      for (int64_t c = 0; c < g.in_channels; ++c)
        sum += w[weight + c * ws.channel] * x[from + c * xs.channel];
    } while (next_position(tap, g.kernel, g.axes));
    y[offset_of(out, ys, g.axes)] = sum;
  }
};

template <typename T>
struct ConvBackwardData {
  ConvGeometry g;
  AxisStrides xs, ws, ys;
  const T* dy;
  const T* w;
  T* dx;

  CREMA_HD void operator()(int64_t i) const {
    const AxisPosition in = position_of(i, g.axes, g.in, g.all_in_channels());
    const int64_t first =
        in.channel / g.in_channels * g.out_channels;  // first output channel of this group
    int64_t tap[kMaxSpatialAxes] = {};
    T sum = 0;
    do {
      int64_t from = in.outer * ys.outer + first * ys.channel;
      int64_t weight = first * ws.outer + in.channel % g.in_channels * ws.channel;
      bool inside = true;
      for (int axis = 0; axis < g.axes; ++axis) {
        const int64_t at = in.at[axis] + g.pad[axis] - tap[axis] * g.dilation[axis];
        const int64_t out = at / g.stride[axis];
        inside = inside && at >= 0 && at % g.stride[axis] == 0 && out < g.out[axis];
        from += out * ys.axis[axis];
        weight += tap[axis] * ws.axis[axis];
      }
      if (!inside) continue;
      for (int64_t o = 0; o < g.out_channels; ++o)
        sum += w[weight + o * ws.outer] * dy[from + o * ys.channel];
    } while (next_position(tap, g.kernel, g.axes));
    dx[offset_of(in, xs, g.axes)] = sum;
  }
};

template <typename T>
struct ConvBackwardWeights {
  ConvGeometry g;
  AxisStrides xs, ws, ys;
  const T* x;
  const T* dy;
  T* dw;
  bool accumulate;

  CREMA_HD void operator()(int64_t i) const {
    const AxisPosition tap = position_of(i, g.axes, g.kernel, g.in_channels);
    const int64_t channel = tap.outer / g.out_channels * g.in_channels + tap.channel;
    T sum = 0;
    for (int64_t image = 0; image < g.images; ++image) {
      T of_image = 0;  // partial sum per image: long float32 sums lose digits
      int64_t out[kMaxSpatialAxes] = {};
      do {
        int64_t from = image * xs.outer + channel * xs.channel;
        int64_t gradient = image * ys.outer + tap.outer * ys.channel;
        bool inside = true;
        for (int axis = 0; axis < g.axes; ++axis) {
          const int64_t at =
              out[axis] * g.stride[axis] - g.pad[axis] + tap.at[axis] * g.dilation[axis];
          inside = inside && at >= 0 && at < g.in[axis];
          from += at * xs.axis[axis];
          gradient += out[axis] * ys.axis[axis];
        }
        if (inside) of_image += x[from] * dy[gradient];
      } while (next_position(out, g.out, g.axes));
      sum += of_image;
    }
    T& goal = dw[offset_of(tap, ws, g.axes)];
    goal = accumulate ? goal + sum : sum;
  }
};

class ReferenceConv final : public LinearKernel {
 public:
  explicit ReferenceConv(const ConvCase& c)
      : c_(c),
        g_(geometry_of(c)),
        xs_(strides_of(c.x, c.order)),
        ws_(strides_of(c.w, Order::row_major)),
        ys_(strides_of(c.y, c.order)) {}

  void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& y,
               const Tensor&) override {
    on(y, [&]<typename T>() {
      const T* bias = b ? b.data<T>() : nullptr;
      parallel_for(context, y.count(),
                   ConvForward<T>{g_, xs_, ws_, ys_, x.data<T>(), w.data<T>(), bias, y.data<T>()},
                   64);
      add_bias<T>(context, 1, 1, y.count(), nullptr, c_.relu, y.data<T>());
    });
  }

  void backward_data(Context& context, const OutputGradient& g, const Tensor& w, const Tensor& dx,
                     const Tensor&) override {
    on(dx, [&]<typename T>() {
      parallel_for(
          context, dx.count(),
          ConvBackwardData<T>{g_, xs_, ws_, ys_, g.dy.data<T>(), w.data<T>(), dx.data<T>()}, 64);
    });
  }

  void backward_weights(Context& context, const Tensor& x, const OutputGradient& g,
                        const Tensor& dw, const Tensor&, bool accumulate, bool,
                        const Tensor&) override {
    on(dw, [&]<typename T>() {
      parallel_for(context, dw.count(),
                   ConvBackwardWeights<T>{g_, xs_, ws_, ys_, x.data<T>(), g.dy.data<T>(),
                                          dw.data<T>(), accumulate},
                   4);
    });
  }

 private:
  ConvCase c_;
  ConvGeometry g_;
  AxisStrides xs_, ws_, ys_;
};

std::unique_ptr<LinearKernel> make_conv_reference(Context&, const ConvCase& c,
                                                  std::string& reason) {
  if (!is_half(c.dtype)) return std::make_unique<ReferenceConv>(c);
  reason = cat("no ", name_of(c.dtype));
  return nullptr;
}

REGISTER_KERNEL(conv_kernels, "plain", RunsOn::both, 0, make_conv_reference);

}  // namespace
}  // namespace crema

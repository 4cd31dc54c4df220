// FlowWarp (FlowNet): fetches each pixel from where an optical flow says that it comes from.
//   y[n,c,h,w] = x[n,c] at row h + f[n,1,h,w] and column w + f[n,0,h,w], bilinear
//   fill_value for positions outside: rows from 0 to below H and columns from 0 to below W are inside
// Shapes: x (N, C, H, W), flow f (N, 2, H, W): columns first; y as x.
// Parameters: none.
// Gradient: each dy goes with the same weights to the pixels it was read from; df[n,0] sums over
// channels dy times the horizontal derivative of x at that position, df[n,1] the vertical one. Both
// are 0 for positions outside.
#include <cmath>

#include "kernels/core/pixel_between.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/params/forks_flow.pb.h"

namespace crema {
namespace {

template <typename T>
struct Flow {
  const T* flow;
  int64_t channels, height, width;
  CREMA_HD int64_t positions() const { return height * width; }
  CREMA_HD PixelBetween<T> source(int64_t image, int64_t position) const {
    const T* f = flow + 2 * image * positions() + position;
    return {static_cast<T>(position / width) + f[positions()],
            static_cast<T>(position % width) + f[0], height, width};
  }
};

template <typename T>
struct Warp {
  Flow<T> by;
  const T* x;
  T* y;
  T fill;
  CREMA_HD void operator()(int64_t plane, int64_t position) const {
    const PixelBetween<T> from = by.source(plane / by.channels, position);
    y[plane * by.positions() + position] =
        from.inside ? from.value(x + plane * by.positions(), by.width) : fill;
  }
};

// A whole plane, so that the order of additions is fixed.
template <typename T>
struct WarpImageGradient {
  Flow<T> by;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t plane) const {
    T* const to = dx + plane * by.positions();
    for (int64_t i = 0; i < by.positions(); ++i) to[i] = 0;
    for (int64_t i = 0; i < by.positions(); ++i) {
      const PixelBetween<T> from = by.source(plane / by.channels, i);
      if (from.inside) from.add(to, by.width, dy[plane * by.positions() + i]);
    }
  }
};

template <typename T>
struct WarpFlowGradient {
  Flow<T> by;
  const T *x, *dy;
  T* df;
  CREMA_HD void operator()(int64_t image, int64_t position) const {
    const PixelBetween<T> from = by.source(image, position);
    T rows = 0, columns = 0;
    for (int64_t c = 0; from.inside && c < by.channels; ++c) {
      const int64_t plane = (image * by.channels + c) * by.positions();
      rows += dy[plane + position] * from.by_row(x + plane, by.width);
      columns += dy[plane + position] * from.by_column(x + plane, by.width);
    }
    df[2 * image * by.positions() + position] = columns;
    df[(2 * image + 1) * by.positions() + position] = rows;
  }
};

class FlowWarpLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::resize, .keeps_channels = true};

 private:
  Arity bottoms() const override { return {2, 2}; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &flow = bottoms[1];
    require(x.axes() == 4, "FlowWarp takes images (N, C, H, W), but bottom 0 is ", x.brief());
    require(flow == Shape({x[0], 2, x[2], x[3]}), "the flow, bottom 1, is ", flow.brief(),
            ", but must be ", x[0], "x2x", x[2], "x", x[3],
            ": horizontal and vertical movement of each pixel");
    return {{x}, {}};
  }

  template <typename T>
  static Flow<T> flow(const Tensor& x, const Tensor& flow) {
    const Shape& shape = x.shape();
    return {flow.data<T>(), shape[1], shape[2], shape[3]};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    const bool zeros = params<FlowWarpParameter>().fill_value() == FlowWarpParameter::ZERO;
    on(x, [&]<typename T>() {
      parallel_rows(context, x.shape().count(0, 2), x.shape().count(2),
                    Warp<T>{flow<T>(x, pass.bottom[1]), x.data<T>(), pass.top[0].data<T>(),
                            zeros ? T(0) : T(NAN)});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &x = pass.bottom[0], &dy = pass.top_diff[0];
    on(x, [&]<typename T>() {
      const Flow<T> by = flow<T>(x, pass.bottom[1]);
      if (const Tensor& dx = pass.bottom_diff[0]) {
        parallel_for(context, x.shape().count(0, 2),
                     WarpImageGradient<T>{by, dy.data<T>(), dx.data<T>()}, 1);
      }
      if (const Tensor& df = pass.bottom_diff[1]) {
        parallel_rows(context, x.shape()[0], by.positions(),
                      WarpFlowGradient<T>{by, x.data<T>(), dy.data<T>(), df.data<T>()});
      }
    });
  }
};

}  // namespace
REGISTER_LAYER(FlowWarp, FlowWarpLayer);
}  // namespace crema

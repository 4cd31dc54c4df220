// DeformableConvolution (Deformable ConvNets): a convolution whose taps are moved by offsets that
// another layer predicts for each position.
//   y[n,o,p] = b[o] + sum over c and k of w[o,c,k] * x[n,c] at p * stride - pad + k * dilation + d
//   d: rows and columns of tap k at position p, channels 2 (g * K + k) and the next of the second
//   bottom; g is the deformable_group of c. Bilinear; 0 for rows outside of 0 to below H, columns
//   likewise.
// Shapes: x (N, C, H, W), offsets (N, 2 * deformable_group * K, H', W') for the K = kernel_h *
// kernel_w taps, y (N, num_output, H', W') as for Convolution; group splits channels as there.
// Parameters: w (num_output, C/group, kernel_h, kernel_w), b (num_output) unless bias_term is
// false.
// Gradient: of y = w * columns + b, where a column has the values at all taps of a position. Those
// of columns go back to the pixels they were read from, and times the derivatives of x there to the
// offsets.
#include "kernels/core/pixel_between.h"
#include "kernels/gemm/gemm.h"
#include "kernels/pointwise/bias.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "layers/vision/spatial_params.h"
#include "proto/params/convolution.pb.h"

namespace crema {
namespace {

struct Taps {
  int64_t channels, height, width, out_height, out_width;
  int64_t kernel[2], stride[2], pad[2], dilation[2];
  int64_t per_group;  // channels with the same offsets

  CREMA_HD int64_t count() const { return kernel[0] * kernel[1]; }
  CREMA_HD int64_t positions() const { return out_height * out_width; }
  CREMA_HD int64_t pixels() const { return height * width; }
  // Where a tap reads; offsets: those of an image.
  template <typename T>
  CREMA_HD PixelBetween<T> source(const T* offsets, int64_t group, int64_t tap,
                                  int64_t position) const {
    const T* rows = offsets + 2 * (group * count() + tap) * positions() + position;
    const int64_t row = position / out_width * stride[0] - pad[0] + tap / kernel[1] * dilation[0];
    const int64_t column =
        position % out_width * stride[1] - pad[1] + tap % kernel[1] * dilation[1];
    return {static_cast<T>(row) + rows[0], static_cast<T>(column) + rows[positions()], height,
            width};
  }
};

// For one image; a row is a channel and a tap.
template <typename T>
struct ColumnsBody {
  Taps taps;
  const T *x, *offsets;
  T* columns;
  CREMA_HD void operator()(int64_t row, int64_t position) const {
    const int64_t channel = row / taps.count();
    const PixelBetween<T> from =
        taps.source(offsets, channel / taps.per_group, row % taps.count(), position);
    columns[row * taps.positions() + position] =
        from.inside ? from.value(x + channel * taps.pixels(), taps.width) : T(0);
  }
};

// A whole plane, so that the order of additions is fixed.
template <typename T>
struct PixelsGradient {
  Taps taps;
  const T *d_columns, *offsets;
  T* dx;
  CREMA_HD void operator()(int64_t channel) const {
    T* const plane = dx + channel * taps.pixels();
    for (int64_t i = 0; i < taps.pixels(); ++i) plane[i] = 0;
    for (int64_t tap = 0; tap < taps.count(); ++tap) {
      const T* slopes = d_columns + (channel * taps.count() + tap) * taps.positions();
      for (int64_t i = 0; i < taps.positions(); ++i) {
        const PixelBetween<T> from = taps.source(offsets, channel / taps.per_group, tap, i);
        if (from.inside) from.add(plane, taps.width, slopes[i]);
      }
    }
  }
};

// A row is a tap of a group.
template <typename T>
struct OffsetsGradient {
  Taps taps;
  const T *x, *d_columns, *offsets;
  T* d_offsets;
  CREMA_HD void operator()(int64_t row, int64_t position) const {
    const int64_t group = row / taps.count(), tap = row % taps.count();
    const PixelBetween<T> from = taps.source(offsets, group, tap, position);
    T down = 0, across = 0;
    const int64_t first = group * taps.per_group;
    for (int64_t c = first; from.inside && c < first + taps.per_group; ++c) {
      const T slope = d_columns[(c * taps.count() + tap) * taps.positions() + position];
      down += slope * from.by_row(x + c * taps.pixels(), taps.width);
      across += slope * from.by_column(x + c * taps.pixels(), taps.width);
    }
    d_offsets[2 * row * taps.positions() + position] = down;
    d_offsets[(2 * row + 1) * taps.positions() + position] = across;
  }
};

class DeformableConvolutionLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::convolution, .learned = 1};

 private:
  const ConvolutionParameter& p() const { return params<ConvolutionParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    const Shape& x = bottoms[0];
    require(x.axes() == 4 && p().axis() == 1,
            "DeformableConvolution takes images (N, C, H, W), but bottom 0 is ", x.brief());
    require(p().num_output() > 0,
            "there is no num_output (or 0): how many channels should the top have?");
    spatial_ = spatial_params(p(), x);
    const auto divides = [](const char* name, int64_t groups, int64_t channels, const char* whose) {
      require(groups > 0 && channels % groups == 0, name, " ", groups, " does not divide the ",
              channels, " channels of the ", whose);
    };
    divides("group", p().group(), x[1], "bottom");
    divides("group", p().group(), p().num_output(), "top");
    divides("deformable_group", p().deformable_group(), x[1], "bottom");
    add_parameter({p().num_output(), x[1] / p().group(), spatial_.kernel[0], spatial_.kernel[1]},
                  p().weight_filler());
    if (p().bias_term()) add_parameter({p().num_output()}, p().bias_filler());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    Shape y = bottoms[0], offsets = bottoms[0];
    require(y.axes() == 4 && y[1] == parameters()[0].shape[1] * p().group(), "bottom 0 is ",
            y.brief(), ", but the weights are ", parameters()[0].shape.brief());
    for (int i = 0; i < 2; ++i) {
      const auto k = static_cast<size_t>(i);
      const int64_t window = spatial_.dilation[k] * (spatial_.kernel[k] - 1) + 1;
      const int64_t room = y[2 + i] + 2 * spatial_.pad[k] - window;
      require(room >= 0, "a window of ", window, " does not fit on axis ", 2 + i, " of ",
              bottoms[0].brief(), " with pad ", spatial_.pad[k]);
      offsets[2 + i] = y[2 + i] = room / spatial_.stride[k] + 1;
    }
    y[1] = p().num_output();
    offsets[1] = 2 * int64_t{p().deformable_group()} * spatial_.kernel[0] * spatial_.kernel[1];
    require(bottoms[1] == offsets, "the offsets, bottom 1, are ", bottoms[1].brief(),
            ", but must be ", offsets.brief(),
            ": rows and columns for each deformable_group and tap, at each position of the top");
    return {{y}, {}};
  }

  int64_t multiply_adds(const std::vector<Shape>&, const std::vector<Shape>& tops) const override {
    return tops[0].count() * parameters()[0].shape.count(1);
  }

  Taps taps(const Shape& x, const Shape& y) const {
    Taps t{};
    t.channels = x[1], t.height = x[2], t.width = x[3];
    t.out_height = y[2], t.out_width = y[3];
    for (size_t i = 0; i < 2; ++i) {
      t.kernel[i] = spatial_.kernel[i], t.stride[i] = spatial_.stride[i];
      t.pad[i] = spatial_.pad[i], t.dilation[i] = spatial_.dilation[i];
    }
    t.per_group = x[1] / p().deformable_group();
    return t;
  }

  struct State : LayerState {
    Precision precision = Precision::fp32;
  };

  // Workspace: the columns of an image, and in backward their gradient.
  Prepared prepare(Context&, const Preparation& preparation) const override {
    const Taps t = taps(preparation.bottoms[0], preparation.tops[0]);
    Prepared prepared;
    prepared.make_state<State>().precision = preparation.precision;
    prepared.workspace = static_cast<size_t>((preparation.backward ? 2 : 1) * t.channels *
                                             t.count() * t.positions()) *
                         size_of(preparation.dtype);
    return prepared;
  }

  // The products of all groups: weights (M, K), columns (K, N).
  template <typename Pass>
  Gemm product(const Pass& pass, const Taps& t) const {
    const int64_t groups = p().group(), m = p().num_output() / groups,
                  k = t.channels / groups * t.count(), n = t.positions();
    Gemm g{.m = m, .n = n, .k = k, .batch = groups};
    g.precision = state_of<State>(pass).precision;
    g.batch_stride_a = m * k, g.batch_stride_b = k * n, g.batch_stride_c = m * n;
    return g;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    const Taps t = taps(x.shape(), y.shape());
    on(x, [&]<typename T>() {
      T* const columns = pass.workspace.data<T>();
      for (int64_t n = 0; n < x.shape()[0]; ++n) {
        const T* offsets = pass.bottom[1].data<T>() + n * pass.bottom[1].shape().count(1);
        parallel_rows(context, t.channels * t.count(), t.positions(),
                      ColumnsBody<T>{t, x.data<T>() + n * x.shape().count(1), offsets, columns});
        gemm<T>(context, product(pass, t), pass.parameters[0].data<T>(), columns,
                y.data<T>() + n * y.shape().count(1));
      }
      if (p().bias_term())
        add_bias<T>(context, y.shape()[0], y.shape()[1], t.positions(),
                    pass.parameters[1].data<T>(), {}, y.data<T>());
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &x = pass.bottom[0], &dy = pass.top_diff[0];
    const Tensor &dx = pass.bottom_diff[0], &d_offsets = pass.bottom_diff[1];
    const Tensor& dw = pass.parameter_diff[0];
    const Taps t = taps(x.shape(), dy.shape());
    on(x, [&]<typename T>() {
      if (p().bias_term() && pass.parameter_diff[1])
        bias_gradient<T>(context, dy.shape()[0], dy.shape()[1], t.positions(), dy.data<T>(),
                         pass.parameter_diff[1].data<T>(), pass.accumulate[1] != 0);
      T* const columns = pass.workspace.data<T>();
      T* const d_columns = columns + t.channels * t.count() * t.positions();
      for (int64_t n = 0; n < x.shape()[0]; ++n) {
        const int64_t of_x = n * x.shape().count(1),
                      of_offsets = n * pass.bottom[1].shape().count(1);
        const T *image = x.data<T>() + of_x, *offsets = pass.bottom[1].data<T>() + of_offsets;
        const T* slopes = dy.data<T>() + n * dy.shape().count(1);
        const Gemm forward = product(pass, t);
        if (dw) {
          parallel_rows(context, t.channels * t.count(), t.positions(),
                        ColumnsBody<T>{t, image, offsets, columns});
          Gemm g{.transpose_b = true, .m = forward.m, .n = forward.k, .k = forward.n};
          g.beta = n > 0 || pass.accumulate[0] ? 1.f : 0.f;
          g.batch = forward.batch, g.precision = forward.precision;
          g.batch_stride_a = forward.batch_stride_c, g.batch_stride_b = forward.batch_stride_b;
          g.batch_stride_c = forward.batch_stride_a;
          gemm<T>(context, g, slopes, columns, dw.data<T>());
        }
        if (!dx && !d_offsets) continue;
        Gemm g{.transpose_a = true, .m = forward.k, .n = forward.n, .k = forward.m};
        g.batch = forward.batch, g.precision = forward.precision;
        g.batch_stride_a = forward.batch_stride_a, g.batch_stride_b = forward.batch_stride_c;
        g.batch_stride_c = forward.batch_stride_b;
        gemm<T>(context, g, pass.parameters[0].data<T>(), slopes, d_columns);
        if (dx)
          parallel_for(context, t.channels,
                       PixelsGradient<T>{t, d_columns, offsets, dx.data<T>() + of_x}, 1);
        if (d_offsets)
          parallel_rows(
              context, p().deformable_group() * t.count(), t.positions(),
              OffsetsGradient<T>{t, image, d_columns, offsets, d_offsets.data<T>() + of_offsets});
      }
    });
  }

  SpatialParams spatial_;
};

}  // namespace
REGISTER_LAYER(DeformableConvolution, DeformableConvolutionLayer);
}  // namespace crema

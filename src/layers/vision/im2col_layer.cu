// Im2col: the patches under a convolution's window, laid out as channels.
//   y[n, c*K + k, p] = x[n, c, p*stride - pad + k*dilation], 0 outside of x
// where k runs over the K elements of the window, p over its positions.
// Shapes: x (N, C, spatial...), y (N, C*K, out...) with
//   out = (in + 2*pad - dilation*(kernel-1) - 1) / stride + 1, rounded down.
// One to six spatial axes after `axis`.
// Parameters: none.
// Gradient: dx is the sum of dy over all patches that contain the value.
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "layers/vision/spatial_params.h"
#include "proto/params/convolution.pb.h"

namespace crema {
namespace {

struct PatchAxis {
  int32_t in = 1, out = 1, kernel = 1, stride = 1, pad = 0, dilation = 1;

  // Input position that the window at `position` reads through its element `cell`, perhaps outside;
  // and whether it is inside.
  CREMA_HD int32_t seen(int32_t position, int32_t cell) const {
    return position * stride - pad + cell * dilation;
  }
  CREMA_HD bool has(int32_t at) const { return at >= 0 && at < in; }
  // Position of the window that reads `at` through this cell; -1: none.
  CREMA_HD int32_t seeing(int32_t at, int32_t cell) const {
    const int32_t steps = at + pad - cell * dilation;
    if (steps < 0) return -1;
    const int32_t position = stride == 1 ? steps : steps / stride;
    return position < out && position * stride == steps ? position : -1;
  }
};

// A row: all points that differ only along the last axis.
template <int kAxes>
struct Patches {
  static constexpr int kLast = kAxes - 1;
  PatchAxis axis[kAxes];
  int64_t cells = 1, in_points = 1, out_points = 1;

  // Input row that the window's row reads through the cell's row; -1: outside.
  CREMA_HD int32_t row_seen(int32_t row, int32_t cell) const {
    int32_t input = 0, step = 1;
    for (int i = kLast - 1; i >= 0; --i) {
      const PatchAxis& a = axis[i];
      const int32_t at = a.seen(i == 0 ? row : row % a.out, i == 0 ? cell : cell % a.kernel);
      input = input < 0 || !a.has(at) ? -1 : input + at * step;
      row /= a.out;
      cell /= a.kernel;
      step *= a.in;
    }
    return input;
  }
  // The row of windows that read this input row through the cell's row; -1: none.
  CREMA_HD int32_t row_seeing(int32_t input, int32_t cell) const {
    int32_t row = 0, step = 1;
    for (int i = kLast - 1; i >= 0; --i) {
      const PatchAxis& a = axis[i];
      const int32_t position =
          a.seeing(i == 0 ? input : input % a.in, i == 0 ? cell : cell % a.kernel);
      row = row < 0 || position < 0 ? -1 : row + position * step;
      input /= a.in;
      cell /= a.kernel;
      step *= a.out;
    }
    return row;
  }
};

// kWidth points per thread.
template <typename T, int kAxes, int kWidth>
struct GatherPatches {
  Patches<kAxes> patches;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t row, int64_t piece) const {
    const PatchAxis& last = patches.axis[kAxes - 1];
    const auto cell = static_cast<int32_t>(row % patches.cells),
               point = static_cast<int32_t>(piece * kWidth);
    const int32_t column = cell % last.kernel, cell_row = cell / last.kernel;
    const T* plane = x + row / patches.cells * patches.in_points;
    int32_t position = point % last.out, out_row = point / last.out;
    int32_t in_row = patches.row_seen(out_row, cell_row);
    Pack<T, kWidth> values;
    for (int k = 0; k < kWidth; ++k) {
      const int32_t at = last.seen(position, column);
      values.v[k] =
          in_row >= 0 && last.has(at) ? plane[static_cast<int64_t>(in_row) * last.in + at] : T(0);
      if (++position == last.out) {
        position = 0;
        in_row = patches.row_seen(++out_row, cell_row);
      }
    }
    *reinterpret_cast<Pack<T, kWidth>*>(y + row * patches.out_points + point) = values;
  }
};

template <typename T, int kAxes>
struct SumPatches {
  Patches<kAxes> patches;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t plane, int64_t input) const {
    const PatchAxis& last = patches.axis[kAxes - 1];
    const auto at = static_cast<int32_t>(input);
    const int32_t column = at % last.in, in_row = at / last.in;
    const T* from = dy + plane * patches.cells * patches.out_points;
    Compute<T> sum = 0;
    for (int64_t cell = 0; cell < patches.cells; cell += last.kernel) {
      const int32_t row = patches.row_seeing(in_row, static_cast<int32_t>(cell) / last.kernel);
      if (row < 0) continue;
      for (int32_t k = 0; k < last.kernel; ++k) {
        const int32_t position = last.seeing(column, k);
        if (position < 0) continue;
        sum += Compute<T>(from[(cell + k) * patches.out_points +
                               static_cast<int64_t>(row) * last.out + position]);
      }
    }
    dx[plane * patches.in_points + input] = sum;
  }
};

class Im2colLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::shape, .copies = true};

 private:
  LayerTraits traits() const override {
    return {.half_rule = HalfRule::follows, .reads = {false, false}};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    spatial_ = spatial_params(params<ConvolutionParameter>(), bottoms[0]);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    Shape y = bottoms[0];
    for (size_t i = 0; i < spatial_.kernel.size(); ++i) {
      const int axis = spatial_.axis + 1 + static_cast<int>(i);
      const int64_t window = spatial_.dilation[i] * (spatial_.kernel[i] - 1) + 1;
      const int64_t room = y[axis] + 2 * spatial_.pad[i] - window;
      require(room >= 0, "a window of ", window, " does not fit on axis ", axis, " of the bottom, ",
              bottoms[0].brief(), ", with pad ", spatial_.pad[i]);
      y[axis] = room / spatial_.stride[i] + 1;
      y[spatial_.axis] *= spatial_.kernel[i];
    }
    constexpr int64_t kMax = int64_t{1} << 31;
    require(bottoms[0].count(spatial_.axis + 1) < kMax && y.count(spatial_.axis + 1) < kMax,
            "the planes of ", bottoms[0].brief(), " or of ", y.brief(),
            " have 2^31 positions or more, which Im2col does not support");
    return {{y}, {}};
  }

  // Missing axes have one position.
  template <int kAxes>
  Patches<kAxes> patches(const Shape& x, const Shape& y) const {
    Patches<kAxes> patches;
    const int axes = static_cast<int>(spatial_.kernel.size());
    for (int i = 0; i < axes; ++i) {
      const int axis = spatial_.axis + 1 + i;
      const auto short_of = [](int64_t value) { return static_cast<int32_t>(value); };
      patches.axis[kAxes - axes + i] = {short_of(x[axis]),
                                        short_of(y[axis]),
                                        short_of(spatial_.kernel[i]),
                                        short_of(spatial_.stride[i]),
                                        short_of(spatial_.pad[i]),
                                        short_of(spatial_.dilation[i])};
      patches.cells *= spatial_.kernel[i];
      patches.in_points *= x[axis];
      patches.out_points *= y[axis];
    }
    return patches;
  }

  template <typename Body>
  void with_axes(const Body& body) const {
    if (spatial_.kernel.size() <= 2) {
      body.template operator()<2>();
    } else {
      body.template operator()<6>();
    }
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    const int64_t rows = y.shape().count(0, spatial_.axis + 1),
                  points = y.shape().count(spatial_.axis + 1);
    on_real(y, [&]<typename T>() {
      with_axes([&]<int kAxes>() {
        const auto gather = [&]<int kWidth>() {
          parallel_rows(context, rows, points / kWidth,
                        GatherPatches<T, kAxes, kWidth>{patches<kAxes>(x.shape(), y.shape()),
                                                        x.data<T>(), y.data<T>()});
        };
        takes_packs<T>(points, y.raw()) ? gather.template operator()<kPackCount<T>>()
                                        : gather.template operator()<1>();
      });
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &dx = pass.bottom_diff[0], &dy = pass.top_diff[0];
    on_real(dx, [&]<typename T>() {
      with_axes([&]<int kAxes>() {
        parallel_rows(context, dx.shape().count(0, spatial_.axis + 1),
                      dx.shape().count(spatial_.axis + 1),
                      SumPatches<T, kAxes>{patches<kAxes>(dx.shape(), dy.shape()), dy.data<T>(),
                                           dx.data<T>()});
      });
    });
  }

  SpatialParams spatial_;
};

}  // namespace
REGISTER_LAYER(Im2col, Im2colLayer);
}  // namespace crema

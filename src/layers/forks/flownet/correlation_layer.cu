// Correlation (FlowNet): compares each patch of one blob with displaced patches of another.
//   y[n,d,h,w] = 1 / (C * K^2) * sum over c and the K x K patch of a[n,c,i,j] * b[n,c,i+p,j+q]
//   the patch begins at row stride_1 * h + max_displacement - pad, and at such a column; d runs
//   over the displacements (p, q), rows first: multiples of stride_2 up to max_displacement
//   correlation_type: SUBTRACT has |a - b| instead of the product. Outside of a and b there are
//   zeros.
// Correlation1D (DispNet): the same along rows only. The patch begins at row stride_1 * h, and
// single_direction displaces to the right only (1: from 0 on) or to the left only (-1: from
// -stride_2 on, one step beyond max_displacement, as in that fork).
// Shapes: a and b (N, C, H, W), K = kernel_size, an odd number; R = max_displacement + (K - 1) / 2
// and r = max_displacement / stride_2 rounded down give y (N, (2r + 1)^2, (H + 2 pad - 2R) /
// stride_1, (W + 2 pad - 2R) / stride_1), rounded up; of Correlation1D (N, 2r + 1 or r + 1, (H - K
// + 1) / stride_1, ...).
// Parameters: none.
// Gradient: da[n,c,i,j] = 1 / (C * K^2) * sum of dy * b over all patches and displacements that
// read it, db likewise; SUBTRACT has the sign of a - b, or of b - a, instead of the other factor.
#include "base/ceil_div.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/params/forks_flow.pb.h"

namespace crema {
namespace {

struct Displacements {
  int64_t channels, height, width;              // of the bottoms
  int64_t top_channels, top_height, top_width;  // of the top
  int64_t kernel, stride;
  int64_t first_row, first_column;        // of the first patch
  int64_t columns, step;                  // displacements side by side, and the step between them
  int64_t least_rows, least_columns = 0;  // the first displacement
  bool subtract;

  CREMA_HD int64_t rows_of(int64_t d) const { return d / columns * step + least_rows; }
  CREMA_HD int64_t columns_of(int64_t d) const { return d % columns * step + least_columns; }
  CREMA_HD bool has(int64_t row, int64_t column) const {
    return row >= 0 && row < height && column >= 0 && column < width;
  }
};

template <typename T>
struct Correlate {
  Displacements to;
  const T *a, *b;
  T* y;
  T share;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t d = row / to.top_height % to.top_channels;
    const int64_t image = row / to.top_height / to.top_channels;
    const int64_t first = image * to.channels * to.height * to.width;
    const int64_t top = to.first_row + row % to.top_height * to.stride;
    const int64_t left = to.first_column + column * to.stride;
    const int64_t down = to.rows_of(d), right = to.columns_of(d);
    T sum = 0;
    for (int64_t i = top; i < top + to.kernel; ++i) {
      for (int64_t j = left; j < left + to.kernel; ++j) {
        const bool in_a = to.has(i, j), in_b = to.has(i + down, j + right);
        if (!to.subtract && !(in_a && in_b)) continue;
        for (int64_t c = 0; c < to.channels; ++c) {
          const int64_t plane = first + c * to.height * to.width;
          const T from = in_a ? a[plane + i * to.width + j] : T(0);
          const T other = in_b ? b[plane + (i + down) * to.width + j + right] : T(0);
          sum += !to.subtract ? from * other : from < other ? other - from : from - other;
        }
      }
    }
    y[row * to.top_width + column] = sum * share;
  }
};

// The gradient of a, or with `second` of b. A row is a row of a plane.
template <typename T>
struct CorrelationGradient {
  Displacements to;
  const T *x, *other, *dy;
  T* dx;
  T share;
  bool second;

  // The patches that begin at most kernel - 1 before a position.
  CREMA_HD int64_t first_patch(int64_t from, int64_t at) const {
    const int64_t steps = at - from - (to.kernel - 1);
    return steps <= 0 ? 0 : (steps + to.stride - 1) / to.stride;
  }
  CREMA_HD int64_t end_patch(int64_t from, int64_t at, int64_t extent) const {
    if (at < from) return 0;
    const int64_t end = (at - from) / to.stride + 1;
    return end < extent ? end : extent;
  }
  CREMA_HD T slopes(const T* plane, int64_t i, int64_t j) const {
    const int64_t end_row = end_patch(to.first_row, i, to.top_height);
    const int64_t end_column = end_patch(to.first_column, j, to.top_width);
    T sum = 0;
    for (int64_t h = first_patch(to.first_row, i); h < end_row; ++h) {
      for (int64_t w = first_patch(to.first_column, j); w < end_column; ++w)
        sum += plane[h * to.top_width + w];
    }
    return sum;
  }
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t image = row / to.height / to.channels, at = row % to.height;
    const int64_t plane = (row - at) * to.width, i = row * to.width + column;
    const T* slope = dy + image * to.top_channels * to.top_height * to.top_width;
    T sum = 0;
    for (int64_t d = 0; d < to.top_channels; ++d, slope += to.top_height * to.top_width) {
      const int64_t down = second ? -to.rows_of(d) : to.rows_of(d);
      const int64_t right = second ? -to.columns_of(d) : to.columns_of(d);
      const bool inside = to.has(at + down, column + right);
      if (!to.subtract && !inside) continue;
      const T value = inside ? other[plane + (at + down) * to.width + column + right] : T(0);
      const T factor = !to.subtract ? value : x[i] > value ? T(1) : x[i] < value ? T(-1) : T(0);
      // The patch is one of a.
      sum +=
          factor * (second ? slopes(slope, at + down, column + right) : slopes(slope, at, column));
    }
    dx[i] = sum * share;
  }
};

class CorrelationLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::join};

  explicit CorrelationLayer(bool in_rows = false) : in_rows_(in_rows) {}

 private:
  const CorrelationParameter& p() const { return params<CorrelationParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().kernel_size() % 2 == 1, "kernel_size is ", p().kernel_size(),
            ", but must be odd: the side of the patches that are compared");
    require(p().has_max_displacement(),
            "correlation_param needs max_displacement, the farthest displacement in pixels");
    require(p().stride_1() > 0 && p().stride_2() > 0, "stride_1 and stride_2 are ", p().stride_1(),
            " and ", p().stride_2(), ", but must be positive");
    require(p().single_direction() >= -1 && p().single_direction() <= 1, "single_direction is ",
            p().single_direction(), ", but must be -1 (left), 0 (both) or 1 (right)");
    require(in_rows_ || p().single_direction() == 0,
            "single_direction is for Correlation1D, which displaces along rows only");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& a = bottoms[0];
    require(a.axes() == 4 && bottoms[1] == a, type(),
            " compares two blobs (N, C, H, W) of one shape, but they are ", a.brief(), " and ",
            bottoms[1].brief());
    const int64_t around = p().kernel_size() - 1, pad = 2 * int64_t{p().pad()},
                  border = around + 2 * int64_t{p().max_displacement()};
    const int64_t height = a[2] + (in_rows_ ? -around : pad - border), width = a[3] + pad - border;
    require(height > 0 && width > 0, "patches of ", p().kernel_size(), " and displacements of ",
            p().max_displacement(), " do not fit into ", a[2], "x", a[3], " with pad ", p().pad(),
            "; a larger pad or smaller displacements fit");
    const int64_t side = p().max_displacement() / p().stride_2();
    const int64_t columns = p().single_direction() == 0 ? 2 * side + 1 : side + 1;
    const int64_t stride = p().stride_1();
    return {{{a[0], in_rows_ ? columns : columns * columns, ceil_div(height, stride),
              ceil_div(width, stride)}},
            {}};
  }

  int64_t multiply_adds(const std::vector<Shape>& bottoms,
                        const std::vector<Shape>& tops) const override {
    return tops[0].count() * bottoms[0][1] * p().kernel_size() * p().kernel_size();
  }

  Displacements displacements(const Shape& x, const Shape& y) const {
    Displacements to{};
    to.channels = x[1], to.height = x[2], to.width = x[3];
    to.top_channels = y[1], to.top_height = y[2], to.top_width = y[3];
    to.kernel = p().kernel_size(), to.stride = p().stride_1(), to.step = p().stride_2();
    to.first_column = int64_t{p().max_displacement()} - int64_t{p().pad()};
    to.first_row = in_rows_ ? 0 : to.first_column;
    const int64_t side = p().max_displacement() / p().stride_2();
    const int direction = p().single_direction();
    to.columns = direction == 0 ? 2 * side + 1 : side + 1;
    to.least_columns = to.step * (direction == 0 ? -side : direction < 0 ? -side - 1 : 0);
    to.least_rows = in_rows_ ? 0 : to.least_columns;
    to.subtract = p().correlation_type() == CorrelationParameter::SUBTRACT;
    return to;
  }

  double divided(const Shape& x) const {
    return 1 / static_cast<double>(x[1] * p().kernel_size() * p().kernel_size());
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &a = pass.bottom[0], &y = pass.top[0];
    on(a, [&]<typename T>() {
      parallel_rows(
          context, y.shape().count(0, 3), y.shape()[3],
          Correlate<T>{displacements(a.shape(), y.shape()), a.data<T>(), pass.bottom[1].data<T>(),
                       y.data<T>(), static_cast<T>(divided(a.shape()))});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor& dy = pass.top_diff[0];
    for (size_t k = 0; k < 2; ++k) {
      const Tensor &x = pass.bottom[k], &dx = pass.bottom_diff[k];
      if (!dx) continue;
      on(x, [&]<typename T>() {
        parallel_rows(
            context, x.shape().count(0, 3), x.shape()[3],
            CorrelationGradient<T>{displacements(x.shape(), dy.shape()), x.data<T>(),
                                   pass.bottom[1 - k].data<T>(), dy.data<T>(), dx.data<T>(),
                                   static_cast<T>(divided(x.shape())), k == 1});
      });
    }
  }

  const bool in_rows_;  // Correlation1D
};

}  // namespace
REGISTER_LAYER(Correlation, CorrelationLayer);
REGISTER_LAYER(Correlation1D, CorrelationLayer, true);
}  // namespace crema

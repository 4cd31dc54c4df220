// Resample (FlowNet): resizes images, each pixel being a weighted mean of those around its
// position.
//   y[n,c,h,w] = sum over i and j of wy[h,i] * wx[w,j] * x[n,c,i,j], weights of sum 1
//   the position of column w is (w + 1/2) * W / W' - 1/2, that of a row likewise. The weight at
//   distance d is LINEAR 1 - |d|; CUBIC the cubic convolution with a = -1/2; NEAREST takes the
//   nearest pixel.
//   With antialias distances are divided by the factor if images become smaller. (FlowNet's
//   program adds half of the other axis' factor, which is the same if both factors are.)
// Downsample (FlowNet): the same with aligned corners: the position of column w is w * (W - 1) /
// (W' - 1), the weight 1 - |d| / ((W - 1) / (W' - 1)). NaN is an unknown value: it does not count,
// and a pixel whose unknown weight is more than half of the known one is NaN.
// Shapes: x (N, C, H, W), y (N, C, H', W'): height and width (Downsample: top_height and top_width)
// of the file, or those of a second bottom. Resample's factor gives factor * H and factor * W.
// Parameters: none.
// Gradient: dx sums dy with the same weights. FlowNet's layers have none.
#include <cmath>

#include "device/parallel.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/params/forks_flow.pb.h"

namespace crema {
namespace {

// The pixels of the bottom that a pixel of the top combines along one axis.
struct AxisWeights {
  int64_t taps = 0;            // per pixel of the top
  std::vector<float> firsts;   // for each pixel of the top the first that it reads
  std::vector<float> weights;  // taps of each
  std::vector<float> begins;   // for each pixel of the bottom the first of the top that reads it
  std::vector<float> ends;     // and one past the last
};

using Filter = double (*)(double);

double triangle(double d) { return std::max(0.0, 1 - std::abs(d)); }
double cubic(double d) {
  const double x = std::abs(d);
  if (x >= 2) return 0;
  return x <= 1 ? (1.5 * x - 2.5) * x * x + 1 : ((-0.5 * x + 2.5) * x - 4) * x + 2;
}

// `place`: of pixel 0; `step`: from one to the next; `width`: what distances are divided by; `reach`:
// of the filter. filter: null for the nearest pixel.
AxisWeights axis_weights(int64_t in, int64_t out, double place, double step, double width,
                         double reach, Filter filter) {
  AxisWeights axis;
  axis.taps =
      filter ? std::min<int64_t>(in, static_cast<int64_t>(2 * std::floor(reach * width)) + 2) : 1;
  axis.begins.assign(static_cast<size_t>(in), static_cast<float>(out));
  axis.ends.assign(static_cast<size_t>(in), 0);
  for (int64_t o = 0; o < out; ++o) {
    const double at = place + static_cast<double>(o) * step;
    const double least = filter ? std::ceil(at - reach * width) : std::floor(at + 0.5);
    const auto first =
        static_cast<int64_t>(std::clamp(least, 0.0, static_cast<double>(in - axis.taps)));
    std::vector<double> taps(static_cast<size_t>(axis.taps), 1);
    double sum = 0;
    for (int64_t k = 0; k < axis.taps; ++k) {
      double& tap = taps[static_cast<size_t>(k)];
      if (filter) tap = filter((static_cast<double>(first + k) - at) / width);
      sum += tap;
      const auto i = static_cast<size_t>(first + k);
      axis.begins[i] = std::min(axis.begins[i], static_cast<float>(o));
      axis.ends[i] = std::max(axis.ends[i], static_cast<float>(o + 1));
    }
    axis.firsts.push_back(static_cast<float>(first));
    for (const double tap : taps) axis.weights.push_back(static_cast<float>(tap / sum));
  }
  return axis;
}

// The same on the device.
struct AxisView {
  int64_t in, out, taps;
  const float *firsts, *weights, *begins, *ends;
  CREMA_HD int64_t first(int64_t o) const { return static_cast<int64_t>(firsts[o]); }
  CREMA_HD int64_t begin(int64_t i) const { return static_cast<int64_t>(begins[i]); }
  CREMA_HD int64_t end(int64_t i) const { return static_cast<int64_t>(ends[i]); }
  CREMA_HD float weight(int64_t o, int64_t i) const {
    const int64_t k = i - first(o);
    return k < 0 || k >= taps ? 0.f : weights[o * taps + k];
  }
};

template <typename T>
struct Mixture {
  AxisView rows, columns;
  const T* x;
  bool unknown;  // NaN is an unknown value

  // The known weight of a pixel of the top; *sum: of the values.
  CREMA_HD T known(int64_t plane, int64_t h, int64_t w, T* sum) const {
    const int64_t top = rows.first(h), left = columns.first(w);
    T total = 0;
    *sum = 0;
    for (int64_t i = 0; i < rows.taps; ++i) {
      const T* from = x + (plane * rows.in + top + i) * columns.in + left;
      const T down = static_cast<T>(rows.weights[h * rows.taps + i]);
      for (int64_t j = 0; j < columns.taps; ++j) {
        const T weight = down * static_cast<T>(columns.weights[w * columns.taps + j]);
        if (unknown && from[j] != from[j]) continue;
        *sum += weight * from[j];
        total += weight;
      }
    }
    return total;
  }
  CREMA_HD bool is_known(T weight) const { return 1 - weight <= weight / 2; }
};

template <typename T>
struct MixtureBody {
  Mixture<T> of;
  T* y;
  CREMA_HD void operator()(int64_t row, int64_t w) const {
    T sum;
    const T weight = of.known(row / of.rows.out, row % of.rows.out, w, &sum);
    y[row * of.columns.out + w] = !of.unknown ? sum : of.is_known(weight) ? sum / weight : T(NAN);
  }
};

template <typename T>
struct MixtureGradient {
  Mixture<T> of;
  const T* dy;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t j) const {
    const int64_t plane = row / of.rows.in, i = row % of.rows.in, at = row * of.columns.in + j;
    T sum = 0;
    const bool counts = !of.unknown || of.x[at] == of.x[at];
    for (int64_t h = of.rows.begin(i); counts && h < of.rows.end(i); ++h) {
      const T down = static_cast<T>(of.rows.weight(h, i));
      for (int64_t w = of.columns.begin(j); w < of.columns.end(j); ++w) {
        T weight = down * static_cast<T>(of.columns.weight(w, j));
        if (of.unknown) {
          T value;
          const T known = of.known(plane, h, w, &value);
          weight = of.is_known(known) ? weight / known : T(0);
        }
        if (weight != 0) sum += weight * dy[(plane * of.rows.out + h) * of.columns.out + w];
      }
    }
    dx[at] = sum;
  }
};

class ResampleLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::resize, .keeps_channels = true};

  explicit ResampleLayer(bool corners = false) : corners_(corners) {}

 private:
  const ResampleParameter& p() const { return params<ResampleParameter>(); }
  Arity bottoms() const override { return {1, 2}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  bool reads_values(int bottom) const override { return bottom == 0; }
  LayerTraits traits() const override { return {.reads = {corners_, false, true}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().type() != ResampleParameter::AREA,
            "type AREA is not defined; LINEAR with antialias is the mean of an area");
    require(p().factor() > 0, "factor is ", p().factor(), ", but must be positive");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() == 4 && bottoms.back().axes() == 4, type(),
            " takes images (N, C, H, W), but the bottoms are ", x.brief(), " and ",
            bottoms.back().brief());
    const DownsampleParameter& down = params<DownsampleParameter>();
    int64_t height = corners_ ? down.top_height() : p().height(),
            width = corners_ ? down.top_width() : p().width();
    if (!corners_ && p().has_factor()) {
      height = static_cast<int64_t>(static_cast<double>(x[2]) * p().factor());
      width = static_cast<int64_t>(static_cast<double>(x[3]) * p().factor());
    }
    if (bottoms.size() == 2) {
      height = bottoms[1][2];
      width = bottoms[1][3];
    }
    require(height > 0 && width > 0, type(), " needs ",
            corners_ ? "top_height and top_width" : "height and width",
            ", or a second bottom of that size");
    const auto fits = [](int64_t in, int64_t out) { return out <= in && (out > 1 || in == 1); };
    require(!corners_ || (fits(x[2], height) && fits(x[3], width)),
            "Downsample makes images smaller, to 2 rows and columns at least, but here ", x[2], "x",
            x[3], " would become ", height, "x", width, "; Resample and Interp take any size");
    return {{{x[0], x[1], height, width}}, {}};
  }

  AxisWeights weights(int64_t in, int64_t out) const {
    if (corners_) {
      const double step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 1;
      return axis_weights(in, out, 0, step, step, 1, triangle);
    }
    const double factor = static_cast<double>(in) / static_cast<double>(out);
    const double width = p().antialias() ? std::max(factor, 1.0) : 1;
    const bool smooth = p().type() == ResampleParameter::CUBIC;
    return axis_weights(in, out, factor / 2 - 0.5, factor, width, smooth ? 2 : 1,
                        p().type() == ResampleParameter::NEAREST ? nullptr
                        : smooth                                 ? cubic
                                                                 : triangle);
  }

  struct State : LayerState {
    Tensor numbers;  // for both axes, one after the other: firsts, weights, begins, ends
    int64_t taps[2] = {0, 0};
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    const Shape &x = preparation.bottoms[0], &y = preparation.tops[0];
    Prepared prepared;
    State& state = prepared.make_state<State>();
    std::vector<float> numbers;
    for (int axis = 0; axis < 2; ++axis) {
      const AxisWeights of = weights(x[2 + axis], y[2 + axis]);
      state.taps[axis] = of.taps;
      for (const auto* part : {&of.firsts, &of.weights, &of.begins, &of.ends})
        numbers.insert(numbers.end(), part->begin(), part->end());
    }
    state.numbers = Tensor(context, Shape{static_cast<int64_t>(numbers.size())});
    from_floats(context, numbers.data(), state.numbers);
    return prepared;
  }

  // x: null where backward need not read it.
  template <typename T>
  Mixture<T> mixture(const State& state, const Shape& x, const Shape& y, const T* values) const {
    AxisView axes[2];
    const float* at = state.numbers.data<float>();
    for (int axis = 0; axis < 2; ++axis) {
      const int64_t in = x[2 + axis], out = y[2 + axis], taps = state.taps[axis];
      axes[axis] = {in, out, taps, at, at + out, at + out + out * taps, at + out + out * taps + in};
      at += out + out * taps + 2 * in;
    }
    return {axes[0], axes[1], values, corners_};
  }

  void forward(Context& context, const Forward& pass) const override {
    const State& state = state_of<State>(pass);
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    on(x, [&]<typename T>() {
      parallel_rows(context, y.shape().count(0, 3), y.shape()[3],
                    MixtureBody<T>{mixture(state, x.shape(), y.shape(), x.data<T>()), y.data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const State& state = state_of<State>(pass);
    const Tensor &dx = pass.bottom_diff[0], &dy = pass.top_diff[0];
    on(dx, [&]<typename T>() {
      const T* x = corners_ ? pass.bottom[0].data<T>() : nullptr;
      parallel_rows(context, dx.shape().count(0, 3), dx.shape()[3],
                    MixtureGradient<T>{mixture(state, dx.shape(), dy.shape(), x), dy.data<T>(),
                                       dx.data<T>()});
    });
  }

  const bool corners_;  // Downsample
};

}  // namespace
REGISTER_LAYER(Resample, ResampleLayer);
REGISTER_LAYER(Downsample, ResampleLayer, true);
}  // namespace crema

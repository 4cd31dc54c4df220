// MarginInnerProduct (forks): InnerProduct whose score of the labelled class is that of a multiple
// of the angle, which makes it harder to reach (SphereFace).
//   y[m,n] = x[m] w[n], but for the label n of m  y = (|x| * g(t) + lambda * x w) / (1 + lambda)
//   t: the angle of x and w; g(t) = (-1)^k cos(a * t) - 2k, decreasing for t from 0 to pi
//   a = 1, 2, 3, 4 for type SINGLE, DOUBLE, TRIPLE, QUADRUPLE
//   lambda = max(lambda_min, base * (1 + gamma * i)^-power), i: `iteration` plus the forward
//   passes, including this one
// Shapes: the axes of x before `axis` form m and the rest k; labels, one per m, integers from 0 to
// num_output - 1; y keeps the former axes and has num_output instead of the latter. A second top
// has lambda.
// Parameters: w (num_output, K); forward L2-normalizes its rows, in place.
// Gradient, as in the fork: dw = dy' x; dx = dy w, but for the label with d(|x| g) / dx normalized
// to length 1, so that steps are equal for all angles. None for labels.
#include "kernels/gemm/gemm.h"
#include "kernels/labels/labels.h"
#include "kernels/norm/l2_normalize.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/reduce_values.h"
#include "layers/detection/annealing.h"
#include "proto/layer.pb.h"
#include "proto/params/forks_face.pb.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
struct Lambda {
  PassNumber passes;
  double base, gamma, power, minimum, start;
  T *lambda, *top;  // top: may be null
  CREMA_HD void operator()(int64_t) const {
    const double value = base * pow(1 + gamma * (start + passes.get() + 1), -power);
    *lambda = static_cast<T>(value > minimum ? value : minimum);
    if (top) *top = *lambda;
  }
};

// g of the cosine c, and the coefficients of d(|x| g): w_share * w + x_share / |x| * x.
template <typename T>
struct Margin {
  T g, w_share, x_share;
  CREMA_HD Margin(int type, T c) {
    const T sign = c > 0 ? T(1) : c < 0 ? T(-1) : T(0), c2 = c * c;
    if (type == MarginInnerProductParameter::DOUBLE) {
      g = 2 * sign * c2 - 1;
      w_share = 4 * sign * c;
      x_share = -(2 * sign * c2 + 1);
    } else if (type == MarginInnerProductParameter::TRIPLE) {
      const T outer = sign * c > T(0.5) ? T(1) : sign * c < T(0.5) ? T(-1) : T(0);
      const T shift = sign * (1 + outer) - 2;
      g = outer * (4 * c2 - 3) * c + shift;
      w_share = outer * (12 * c2 - 3);
      x_share = shift - 8 * outer * c2 * c;
    } else if (type == MarginInnerProductParameter::QUADRUPLE) {
      const T inner = 2 * c2 - 1;
      const T turn = sign * (inner > 0 ? T(1) : inner < 0 ? T(-1) : T(0));
      const T shift = 2 * sign + turn - 3;
      g = turn * (8 * c2 * c2 - 8 * c2 + 1) + shift;
      w_share = turn * (32 * c2 - 16) * c;
      x_share = shift - turn * (24 * c2 * c2 - 8 * c2 - 1);
    } else {
      g = c;
      w_share = 1;
      x_share = 0;
    }
  }
};

template <typename T>
struct LabelScore {
  ClassLabels<T> labels;
  int type;
  const T* squares;  // lengths of x
  const T* lambda;
  LabelNote note;
  T *cosines, *y;
  CREMA_HD void operator()(int64_t m) const {
    const int label = labels.at(m);
    if (label < 0) note.write(m, labels.labels[m]);
    T& own = y[m * labels.classes + (label < 0 ? 0 : label)];
    const T length = sqrt(squares[m]), product = own, cosine = product / length;
    cosines[m] = cosine;
    const T score = (length * Margin<T>(type, cosine).g + *lambda * product) / (1 + *lambda);
    own = label < 0 ? T(NAN) : score;
  }
};

// Corrects dx, which is dy w on entry, for the label.
template <typename T>
struct LabelGradient {
  ClassLabels<T> labels;
  int type;
  const T *x, *w, *dy, *squares, *lambda, *cosines;
  int64_t inputs;
  T* dx;
  CREMA_HD void operator()(int64_t m, int64_t k) const {
    const int label = labels.at(m), own = label < 0 ? 0 : label;
    const Margin<T> margin(type, cosines[m]);
    const T w_share = margin.w_share, x_share = margin.x_share / sqrt(squares[m]);
    const T length = sqrt(w_share * w_share + x_share * x_share);
    const T slope =
        (w_share / length - 1) * w[own * inputs + k] + x_share / length * x[m * inputs + k];
    dx[m * inputs + k] += label < 0 ? T(NAN) : dy[m * labels.classes + own] / (1 + *lambda) * slope;
  }
};

class MarginInnerProductLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::dense,
                                       .learned = 1,
                                       .labels = LabelKind::classes,
                                       .in_use = InUse::left_out};

 private:
  const MarginInnerProductParameter& p() const { return params<MarginInnerProductParameter>(); }
  bool single() const { return p().type() == MarginInnerProductParameter::SINGLE; }
  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {1, 2}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  LayerTraits traits() const override {
    return {.reads = {true, false}, .changes_parameters = true};
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    require(p().num_output() > 0,
            "margin_inner_product_param has no num_output (or 0): how many classes are there?");
    axis_ = bottoms[0].canonical_axis(p().axis());
    outputs_ = p().num_output();
    inputs_ = bottoms[0].count(axis_);
    add_parameter({outputs_, inputs_}, p().weight_filler());
  }

  // kSquares: squared lengths, then cosines.
  enum Saved { kSquares, kLambda, kNote };

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const int64_t rows = x.count(0, axis_);
    require(x.count(axis_) == inputs_, "the bottom has shape ", x.brief(), ", that is ",
            x.count(axis_), " values a sample, but the weights were made for ", inputs_);
    require(bottoms[1].count() == rows, "there must be one label for each of ", rows, " samples (",
            x.brief(), "), but the labels are ", bottoms[1].brief());
    Shape y;
    for (int axis = 0; axis < axis_; ++axis) y.push_back(x[axis]);
    y.push_back(outputs_);
    std::vector<Shape> tops = {y};
    if (message().top_size() > 1) tops.push_back({1});
    return {tops, {{{2, rows}, {}}, {{1}, {}}, {{LabelNote::kCount}, DType::i32, true}}};
  }

  struct State : LayerState {
    Precision precision = Precision::fp32;
  };

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;  // workspace: squared lengths of w
    prepared.make_state<State>().precision = preparation.precision;
    prepared.workspace = static_cast<size_t>(outputs_) * size_of(preparation.dtype);
    return prepared;
  }

  template <typename T>
  ClassLabels<T> labels(const Tensor& labels) const {
    return {labels.data<T>(), outputs_};
  }

  void forward(Context& context, const Forward& pass) const override {
    const Precision precision = state_of<State>(pass).precision;
    const Tensor &x = pass.bottom[0], &w = pass.parameters[0];
    const int64_t rows = pass.bottom[1].count();
    check_labels(pass.bottom[1], outputs_, 1, std::nullopt);
    on(x, [&]<typename T>() {
      T *squares = pass.saved[kSquares].data<T>(), *lambda = pass.saved[kLambda].data<T>();
      T* y = pass.top[0].data<T>();
      parallel_for(context, 1,
                   Lambda<T>{PassNumber(pass), p().base(), p().gamma(), p().power(),
                             p().lambda_min(), static_cast<double>(p().iteration()), lambda,
                             pass.top.size() > 1 ? pass.top[1].data<T>() : nullptr});
      l2_normalize_rows(context, 0, w, pass.workspace);
      gemm<T>(
          context,
          Gemm{.transpose_b = true, .m = rows, .n = outputs_, .k = inputs_, .precision = precision},
          x.data<T>(), w.data<T>(), y);
      if (single()) return;
      parallel_sum<T>(context, {rows, 1, inputs_}, SquaredRow<T>{x.data<T>(), inputs_}, {squares});
      const LabelNote note{pass.saved[kNote].data<int32_t>(), outputs_, 1, pass.pass,
                           pass.live_pass};
      parallel_for(context, rows,
                   LabelScore<T>{labels<T>(pass.bottom[1]), p().type(), squares, lambda, note,
                                 squares + rows, y});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    const Precision precision = state_of<State>(pass).precision;
    const Tensor &x = pass.bottom[0], &w = pass.parameters[0], &dy = pass.top_diff[0];
    const int64_t rows = pass.bottom[1].count();
    on(x, [&]<typename T>() {
      if (const Tensor& dw = pass.parameter_diff[0]) {
        gemm<T>(context,
                Gemm{.transpose_a = true,
                     .m = outputs_,
                     .n = inputs_,
                     .k = rows,
                     .beta = pass.accumulate[0] ? 1.0f : 0.0f,
                     .precision = precision},
                dy.data<T>(), x.data<T>(), dw.data<T>());
      }
      const Tensor& dx = pass.bottom_diff[0];
      if (!dx) return;
      gemm<T>(context, Gemm{.m = rows, .n = inputs_, .k = outputs_, .precision = precision},
              dy.data<T>(), w.data<T>(), dx.data<T>());
      if (single()) return;
      const T* squares = pass.saved[kSquares].data<T>();
      parallel_rows(
          context, rows, inputs_,
          LabelGradient<T>{labels<T>(pass.bottom[1]), p().type(), x.data<T>(), w.data<T>(),
                           dy.data<T>(), squares, pass.saved[kLambda].data<T>(), squares + rows,
                           inputs_, dx.data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[kNote]);
  }
  int64_t multiply_adds(const std::vector<Shape>&, const std::vector<Shape>& tops) const override {
    return tops[0].count() * inputs_;
  }

  int axis_ = 1;
  int64_t inputs_ = 0, outputs_ = 0;
};

}  // namespace
REGISTER_LAYER(MarginInnerProduct, MarginInnerProductLayer);
}  // namespace crema

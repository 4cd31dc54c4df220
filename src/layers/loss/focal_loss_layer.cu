// FocalLoss (forks): softmax cross-entropy that down-weights easy examples.
//   loss = 1 / D * sum of -alpha * (1 - p)^gamma * log(p)    p = softmax(x)[label]
//   D as in SoftmaxWithLoss; alpha 0.25, gamma 2
// Shapes: x (N, C, ...) with the classes along softmax_param's axis, labels with one value per
// position; the loss is a scalar, a second top has the probabilities, like x. Labels are the
// integers from 0 to C - 1; others are an error.
// Parameters: none.
// Gradient: with g = alpha * (1 - p)^(gamma - 1) * (gamma * p * log(p) - (1 - p)): dx[k] = g / D *
// ((k is the label) - softmax(x)[k]), times the loss weight; none for labels, none from the second
// top.
#include "kernels/core/labels.h"
#include "kernels/core/pointwise.h"
#include "kernels/softmax/softmax.h"
#include "kernels/softmax/softmax_sums.h"
#include "layers/layer.h"
#include "layers/loss/loss_sum.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

// A row is an image, a column one of its positions.
template <typename T>
struct Focal {
  ClassLabels<T> labels;
  int64_t inner;
  const T* p;
  T alpha, gamma;
  LabelNote note;

  CREMA_HD int64_t start(int64_t row, int64_t column) const {
    return row * labels.classes * inner + column;
  }
  // Probability of the label; kept off 0 and 1, so that its logarithm and powers of 1 - p are
  // finite.
  CREMA_HD T probability(int64_t row, int64_t column, int label) const {
    const T value = p[start(row, column) + label * inner];
    const T minimum = T(1.17549435e-38), maximum = T(1) - T(1e-7);
    return value < minimum ? minimum : value > maximum ? maximum : value;
  }
  CREMA_HD T loss(int64_t row, int64_t column) const {
    const int64_t position = row * inner + column;
    const int label = labels.at(position);
    if (label == ClassLabels<T>::kBad) note.write(position, labels.labels[position]);
    const T own = probability(row, column, label < 0 ? 0 : label);
    const T loss = -alpha * pow(1 - own, gamma) * log(own);
    return label >= 0 ? loss : label == ClassLabels<T>::kBad ? T(NAN) : T(0);
  }
  CREMA_HD T counted(int64_t row, int64_t column) const {
    return labels.at(row * inner + column) >= 0 ? T(1) : T(0);
  }
  // Derivative of a position's loss with respect to the logarithm of its p.
  CREMA_HD T slope(int64_t row, int64_t column, int label) const {
    const T own = probability(row, column, label);
    return alpha * pow(1 - own, gamma - 1) * (gamma * own * log(own) - (1 - own));
  }
};

template <typename T>
struct FocalGradient {
  Focal<T> of;
  const T* weight;
  LossDivisor<T> divisor;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int label = of.labels.at(row * of.inner + column);
    const T none = label == ClassLabels<T>::kBad ? T(NAN) : T(0);
    const T slope = of.slope(row, column, label < 0 ? 0 : label) * (*weight / divisor.value());
    const int64_t start = of.start(row, column);
    over_classes<T>(
        of.labels.classes, [&](int64_t k) { return of.p[start + k * of.inner]; },
        [&](int64_t k, T value) {
          dx[start + k * of.inner] =
              label >= 0 ? slope * ((k == label ? T(1) : T(0)) - value) : none;
        });
  }
};

class FocalLossLayer : public Layer {
  const FocalLossParameter& p() const { return params<FocalLossParameter>(); }
  const LossParameter& loss() const { return params<LossParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {1, 2}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  BackwardReads reads() const override { return {true, false}; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    axis_ = bottoms[0].canonical_axis(params<SoftmaxParameter>().axis());
    require(p().type() == FocalLossParameter::ORIGIN, "focal_loss_param.type is ",
            FocalLossParameter::Type_Name(p().type()), ", but only ORIGIN is known");
    require(p().gamma() >= 0 && p().alpha() > 0, "alpha is ", p().alpha(), " and gamma ",
            p().gamma(), ", but alpha must be positive and gamma at least 0");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const int64_t positions = x.count(0, axis_) * x.count(axis_ + 1);
    require(bottoms[1].count() == positions, "there must be one label for each place: scores of ",
            x.brief(), " with classes along axis ", axis_, " need ", positions,
            " labels, but there are ", bottoms[1].count(), " (", bottoms[1].brief(), ")");
    std::vector<Shape> tops = {Shape()};
    if (message().top_size() > 1) tops.push_back(x);
    return {tops, {{x, {}}, loss_sums(), {{LabelNote::kCount}, DType::i32, true}}};
  }

  LossNormalizer normalizer(const Shape& x) const {
    return loss_normalizer(loss(), LossParameter::VALID, x.count(0, axis_),
                           x.count(0, axis_) * x.count(axis_ + 1));
  }
  template <typename T>
  Focal<T> body(const std::vector<Tensor>& bottom, const Tensor& probability) const {
    const Shape& x = bottom[0].shape();
    return {{bottom[1].data<T>(), x[axis_], loss().has_ignore_label(), loss().ignore_label()},
            x.count(axis_ + 1),
            probability.data<T>(),
            static_cast<T>(p().alpha()),
            static_cast<T>(p().gamma()),
            {}};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor &x = pass.bottom[0], &probability = pass.saved[0];
    const Shape& shape = x.shape();
    const int64_t classes = shape[axis_], positions = x.count() / classes;
    const int64_t each = axis_ > 0 ? positions / shape[0] : positions;
    check_labels(
        pass.bottom[1], classes, each,
        loss().has_ignore_label() ? std::optional<int>(loss().ignore_label()) : std::nullopt);
    softmax_forward(context, SoftmaxView::of(shape, {}, axis_), x, probability);
    if (pass.top.size() > 1) pointwise_copy(context, pass.top[1], probability);
    on(x, [&]<typename T>() {
      Focal<T> terms = body<T>(pass.bottom, probability);
      terms.note = {pass.saved[2].data<int32_t>(), classes, each, pass.pass, pass.live_pass};
      sum_loss<T>(context, positions / terms.inner, terms.inner, terms, normalizer(shape),
                  pass.saved[1], pass.top[0]);
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor& dx = pass.bottom_diff[0];
    on(dx, [&]<typename T>() {
      const FocalGradient<T> gradient{
          body<T>(pass.bottom, pass.saved[0]), pass.top_diff[0].data<T>(),
          divisor_of<T>(normalizer(dx.shape()), pass.saved[1]), dx.data<T>()};
      parallel_rows(context, dx.shape().count(0, axis_), gradient.of.inner, gradient);
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[2]);
  }

  int axis_ = 1;
};

}  // namespace
REGISTER_LAYER(FocalLoss, FocalLossLayer);
}  // namespace crema

// SigmoidCrossEntropyLoss: cross-entropy of independent yes-or-no predictions.
// SigmoidCrossEntropyLossWeighted (forks): the same with a weight for each value. MultiLabelLoss
// (forks): the same with the targets 1 and -1, and 0 for unknown answers, which do not count.
//   loss = -1 / D * sum of w * (t * log(p) + (1 - t) * log(1 - p))   with p = 1 / (1 + exp(-x))
//   D by loss_param's normalization, by default the batch size; targets that equal ignore_label do
//   not count
// Shapes: x and the targets t (0 to 1; others are an error) have as many values, and so has w, the
// third bottom (1 if there is none); the loss is a scalar, a second top of MultiLabelLoss has p, like
// x.
// Parameters: none.
// Gradient: dx = w * (p - t) / D, times the loss weight; none for targets and w, none from the
// second top.
#include "kernels/pointwise/pointwise_math.h"
#include "layers/loss/ranged_loss.h"

namespace crema {
namespace {

template <typename T>
struct CrossEntropy {
  const T *x, *weights;  // weights: or null
  RangedTargets<T> t;
  bool signs;  // targets are 1, -1 and 0 instead of 1, 0 and ignore_label
  CREMA_HD T target(int64_t i) const { return !signs ? t.at(i) : t.at(i) > 0 ? T(1) : T(0); }
  CREMA_HD T weight(int64_t i) const { return weights ? weights[i] : T(1); }
  CREMA_HD bool counts(int64_t i) const { return (!signs || t.at(i) != 0) && t.counts(i); }
  CREMA_HD T loss(int64_t, int64_t i) const {
    t.note(i);
    // exp of negative values only, so that it cannot overflow.
    const T loss =
        (x[i] > 0 ? x[i] : T(0)) - x[i] * target(i) + log1p_of(exp_of(x[i] > 0 ? -x[i] : x[i]));
    return counts(i) ? weight(i) * loss : T(0);
  }
  CREMA_HD T counted(int64_t, int64_t i) const { return counts(i) ? T(1) : T(0); }
  CREMA_HD T gradient(int64_t i, const LossScale<T>& scale) const {
    const T slope = (sigmoid_of(x[i]) - target(i)) * scale.value();
    return counts(i) ? weight(i) * slope : T(0);
  }
};

struct Probability {
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return sigmoid_of(x);
  }
};

class SigmoidCrossEntropyLossLayer : public RangedLoss<SigmoidCrossEntropyLossLayer> {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::loss, .labels = LabelKind::answers, .activation = "Sigmoid"};

  enum class Kind { plain, weighted, signs };
  explicit SigmoidCrossEntropyLossLayer(Kind kind = Kind::plain) : kind_(kind) {}
  Arity bottoms() const override { return kind_ == Kind::weighted ? Arity{3, 3} : Arity{2, 2}; }
  Arity tops() const override { return {1, signs() ? 2 : 1}; }

  TargetRange range() const override {
    const LossParameter& p = params<LossParameter>();
    TargetRange range;
    if (p.has_ignore_label()) range.ignored = p.ignore_label();
    range.advice = kScaleMasks;
    if (signs()) {
      range.low = -1;
      range.advice = "1 is a yes, -1 a no and 0 unknown";
    } else if (!range.ignored) {
      range.advice +=
          "; loss_param { ignore_label: N } leaves out targets that mean unknown, such "
          "as -1; the numbers of classes belong to SoftmaxWithLoss";
    }
    return range;
  }
  Inference shapes(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &t = bottoms[1];
    require(x.axes() > 0 && x.count() == t.count(),
            "there must be one target for each value, but the bottoms are ", x.brief(), " and ",
            t.brief());
    require_weights(bottoms);
    return {tops_with(x), {loss_sums()}};
  }
  LossNormalizer normalizer(const Shape& x) const {
    return loss_normalizer(params<LossParameter>(), LossParameter::BATCH_SIZE, x[0], x.count(),
                           signs());
  }
  template <typename T>
  CrossEntropy<T> terms(const LossInput& in) const {
    return {in.at<T>(0), in.at<T>(2), ranged<T>(in), signs()};
  }
  void forward(Context& context, const Forward& pass) const override {
    TermLoss::forward(context, pass);
    if (pass.top.size() > 1) pointwise(context, Probability{}, pass.top[1], pass.bottom[0]);
  }

 private:
  bool signs() const { return kind_ == Kind::signs; }
  const Kind kind_;
};

}  // namespace
REGISTER_LAYER(SigmoidCrossEntropyLoss, SigmoidCrossEntropyLossLayer);
REGISTER_LAYER(SigmoidCrossEntropyLossWeighted, SigmoidCrossEntropyLossLayer,
               SigmoidCrossEntropyLossLayer::Kind::weighted);
REGISTER_LAYER(MultiLabelLoss, SigmoidCrossEntropyLossLayer,
               SigmoidCrossEntropyLossLayer::Kind::signs);
}  // namespace crema

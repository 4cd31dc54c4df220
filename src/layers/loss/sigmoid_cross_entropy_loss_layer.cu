// SigmoidCrossEntropyLoss: cross-entropy of independent yes-or-no predictions.
// SigmoidCrossEntropyLossWeighted (forks): the same with a weight for each value. MultiLabelLoss
// (forks): the same with the targets 1 and -1, and 0 for unknown answers, which do not count.
//   loss = -1 / D * sum of w * (t * log(p) + (1 - t) * log(1 - p))   with p = 1 / (1 + exp(-x))
//   D by loss_param's normalization, by default the batch size; targets that equal ignore_label do
//   not count
// Shapes: x and the targets t (0 to 1) have as many values, and so has w, the third bottom (1 if
// there is none); the loss is a scalar, a second top of MultiLabelLoss has p, like x.
// Parameters: none.
// Gradient: dx = w * (p - t) / D, times the loss weight; none for targets and w, none from the
// second top.
#include "kernels/core/pointwise.h"
#include "kernels/core/pointwise_math.h"
#include "layers/layer.h"
#include "layers/loss/loss_sum.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

template <typename T>
struct Targets {
  const T *t, *weights;  // weights: or null
  bool ignoring;
  int ignored;
  bool signs;  // 1, -1 and 0 instead of 1, 0 and ignore_label
  CREMA_HD T at(int64_t i) const { return !signs ? t[i] : t[i] > 0 ? T(1) : T(0); }
  CREMA_HD T weight(int64_t i) const { return weights ? weights[i] : T(1); }
  CREMA_HD bool counts(int64_t i) const {
    return (!signs || t[i] != 0) && (!ignoring || static_cast<int>(t[i]) != ignored);
  }
};

template <typename T>
struct CrossEntropy {
  const T* x;
  Targets<T> targets;
  CREMA_HD T loss(int64_t, int64_t i) const {
    // exp of negative values only, so that it cannot overflow.
    const T loss =
        (x[i] > 0 ? x[i] : T(0)) - x[i] * targets.at(i) + log1p_of(exp_of(x[i] > 0 ? -x[i] : x[i]));
    return targets.counts(i) ? targets.weight(i) * loss : T(0);
  }
  CREMA_HD T counted(int64_t, int64_t i) const { return targets.counts(i) ? T(1) : T(0); }
};

template <typename T>
struct GradientBody {
  CrossEntropy<T> of;
  const T* weight;
  LossDivisor<T> divisor;
  T* dx;
  CREMA_HD void operator()(int64_t i) const {
    const T slope = (sigmoid_of(of.x[i]) - of.targets.at(i)) * (*weight / divisor.value());
    dx[i] = of.targets.counts(i) ? of.targets.weight(i) * slope : T(0);
  }
};

struct Probability {
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return sigmoid_of(x);
  }
};

class SigmoidCrossEntropyLossLayer : public Layer {
 public:
  enum class Variant { plain, weighted, signs };
  explicit SigmoidCrossEntropyLossLayer(Variant variant = Variant::plain) : variant_(variant) {}

 private:
  bool weighted() const { return variant_ == Variant::weighted; }
  bool signs() const { return variant_ == Variant::signs; }
  Arity bottoms() const override { return weighted() ? Arity{3, 3} : Arity{2, 2}; }
  Arity tops() const override { return {1, signs() ? 2 : 1}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  BackwardReads reads() const override { return {true, false}; }

  LossNormalizer normalizer(const Shape& x) const {
    return loss_normalizer(params<LossParameter>(), LossParameter::BATCH_SIZE, x[0], x.count(),
                           signs());
  }
  template <typename T>
  CrossEntropy<T> terms(const std::vector<Tensor>& bottom) const {
    const LossParameter& p = params<LossParameter>();
    return {bottom[0].data<T>(),
            {bottom[1].data<T>(), bottom.size() > 2 ? bottom[2].data<T>() : nullptr,
             p.has_ignore_label(), p.ignore_label(), signs()}};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &t = bottoms[1];
    require(x.axes() > 0 && x.count() == t.count(),
            "there must be one target for each value, but the bottoms are ", x.brief(), " and ",
            t.brief());
    require(bottoms.size() < 3 || bottoms[2].count() == x.count(),
            "the third bottom must have a weight for each value of ", x.brief(), ", but is ",
            bottoms.back().brief());
    std::vector<Shape> tops = {Shape()};
    if (message().top_size() > 1) tops.push_back(x);
    return {tops, {loss_sums()}};
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor& x = pass.bottom[0];
    on(x, [&]<typename T>() {
      sum_loss<T>(context, 1, x.count(), terms<T>(pass.bottom), normalizer(x.shape()),
                  pass.saved[0], pass.top[0]);
    });
    if (pass.top.size() > 1) pointwise(context, Probability{}, pass.top[1], x);
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor& x = pass.bottom[0];
    on(x, [&]<typename T>() {
      const GradientBody<T> body{terms<T>(pass.bottom), pass.top_diff[0].data<T>(),
                                 divisor_of<T>(normalizer(x.shape()), pass.saved[0]),
                                 pass.bottom_diff[0].data<T>()};
      parallel_for(context, x.count(), body);
    });
  }
  const Variant variant_;
};

}  // namespace
REGISTER_LAYER(SigmoidCrossEntropyLoss, SigmoidCrossEntropyLossLayer);
REGISTER_LAYER(SigmoidCrossEntropyLossWeighted, SigmoidCrossEntropyLossLayer,
               SigmoidCrossEntropyLossLayer::Variant::weighted);
REGISTER_LAYER(MultiLabelLoss, SigmoidCrossEntropyLossLayer,
               SigmoidCrossEntropyLossLayer::Variant::signs);
}  // namespace crema

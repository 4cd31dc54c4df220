// SigmoidCrossEntropyLoss: cross-entropy of independent yes-or-no predictions.
//   loss = -1 / D * sum of t * log(p) + (1 - t) * log(1 - p)   with p = 1 / (1 + exp(-x))
//   D by loss_param's normalization, the batch size when absent; targets that equal ignore_label do
//   not count
// Shapes: x and the targets t (0 to 1) have as many values; the loss is a scalar. Parameters: none.
// Gradient: dx = (p - t) / D, times the loss weight; none for the targets.
#include "kernels/pointwise.h"
#include "kernels/pointwise_math.h"
#include "kernels/sum.h"
#include "layers/layer.h"
#include "layers/loss_normalizer.h"

namespace crema {
namespace {

template <typename T>
struct Targets {
  const T* t;
  bool ignoring;
  int ignored;
  CREMA_HD bool counts(int64_t i) const { return !ignoring || static_cast<int>(t[i]) != ignored; }
};

template <typename T>
struct LossTerm {
  const T* x;
  Targets<T> targets;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t i) const {
    if (!targets.counts(i)) return T(0);
    // exp of a negative number only, so that it cannot overflow.
    return (x[i] > 0 ? x[i] : T(0)) - x[i] * targets.t[i] +
           log1p_of(exp_of(x[i] > 0 ? -x[i] : x[i]));
  }
};

template <typename T>
struct ValidTerm {
  Targets<T> targets;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t i) const {
    return targets.counts(i) ? T(1) : T(0);
  }
};

// loss /= max(1, number of targets that count)
template <typename T>
struct DivideBody {
  T* loss;
  const T* valid;
  CREMA_HD void operator()(int64_t) const { *loss /= *valid < 1 ? T(1) : *valid; }
};

template <typename T>
struct GradientBody {
  const T* x;
  Targets<T> targets;
  const T *weight, *valid;  // valid: null when the divisor is already in `factor`
  T factor;
  T* dx;
  CREMA_HD void operator()(int64_t i) const {
    const T divisor = valid && *valid > 1 ? *valid : T(1);
    dx[i] =
        targets.counts(i) ? (sigmoid_of(x[i]) - targets.t[i]) * (factor * *weight / divisor) : T(0);
  }
};

class SigmoidCrossEntropyLossLayer : public Layer {
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  BackwardReads reads() const override { return {true, false}; }

  LossNormalizer normalizer(const Shape& x) const {
    return loss_normalizer(params<LossParameter>(), LossParameter::BATCH_SIZE, x[0], x.count());
  }
  template <typename T>
  Targets<T> targets(const Tensor& t) const {
    const LossParameter& p = params<LossParameter>();
    return {t.data<T>(), p.has_ignore_label(), p.ignore_label()};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &t = bottoms[1];
    require(x.axes() > 0 && x.count() == t.count(),
            "there must be one target for each value, but the bottoms are ", x.brief(), " and ",
            t.brief());
    if (!normalizer(x).by_valid) return {{Shape()}, {}};
    return {{Shape()}, {{Shape(), {}}}};  // saved: the number of targets that count
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor& x = pass.bottom[0];
    const LossNormalizer divisor = normalizer(x.shape());
    on(x, [&]<typename T>() {
      const Targets<T> targets = this->targets<T>(pass.bottom[1]);
      T* loss = pass.top[0].data<T>();
      const SumExtent all{1, 1, x.count()};
      parallel_sum<T>(context, all, LossTerm<T>{x.data<T>(), targets},
                      {loss, divisor.by_valid ? T(1) : static_cast<T>(1 / divisor.constant)});
      if (!divisor.by_valid) return;
      T* valid = pass.saved[0].data<T>();
      parallel_sum<T>(context, all, ValidTerm<T>{targets}, {valid});
      parallel_for(context, 1, DivideBody<T>{loss, valid});
    });
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor &x = pass.bottom[0], &dx = pass.bottom_diff[0];
    const LossNormalizer divisor = normalizer(x.shape());
    on(x, [&]<typename T>() {
      const GradientBody<T> body{x.data<T>(),
                                 targets<T>(pass.bottom[1]),
                                 pass.top_diff[0].data<T>(),
                                 divisor.by_valid ? pass.saved[0].data<T>() : nullptr,
                                 divisor.by_valid ? T(1) : static_cast<T>(1 / divisor.constant),
                                 dx.data<T>()};
      parallel_for(context, x.count(), body);
    });
  }
};

}  // namespace
REGISTER_LAYER(SigmoidCrossEntropyLoss, SigmoidCrossEntropyLossLayer);
}  // namespace crema

// SoftmaxCrossEntropy2Loss (MyCaffe): softmax of the scores and its cross-entropy with a
// distribution over the classes, where SoftmaxWithLoss has one label.
//   loss = 1 / D * sum of -t * log(p)    p = softmax(x) along softmax_param's axis
// D by loss_param's normalization: FULL and VALID (the default) the number of positions,
// BATCH_SIZE, NONE and PRE_FIXED as in SoftmaxWithLoss. As there, -log(p) is clamped to 87.3365;
// the gradient has no such limit. SoftmaxCrossEntropyLoss (MyCaffe): the same with FULL and VALID
// being the number of values. MyCaffe computes the loss of sigmoids with the gradient of a softmax;
// here the loss matches the gradient.
// Shapes: scores x (N, C, ...) and targets t with as many values from 0 to 1 (others are an error),
// which should add up to 1 over the classes; the loss is a scalar, a second top has -t * log(p), like x.
// Parameters: none.
// Gradient: dx = (p * sum of t over the classes - t) / D, times the loss weight; none for t, none
// from the second top.
#include "kernels/labels/targets.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/softmax/softmax.h"
#include "layers/layer.h"
#include "layers/loss/loss_sum.h"
#include "proto/layer.pb.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

template <typename T>
struct SoftCrossEntropy {
  const T *p, *t;
  CREMA_HD T at(int64_t i) const {
    constexpr T kMin = T(1.17549435e-38);  // of float32
    return t[i] == 0 ? T(0) : -t[i] * log(p[i] > kMin ? p[i] : kMin);
  }
  CREMA_HD T loss(int64_t, int64_t i) const { return at(i); }
  CREMA_HD T counted(int64_t, int64_t) const { return T(0); }
};

template <typename T>
struct Terms {
  SoftCrossEntropy<T> of;
  T* terms;
  CREMA_HD void operator()(int64_t i) const { terms[i] = of.at(i); }
};

// The sum of the targets of each position; records those out of range.
template <typename T>
struct TargetOf {
  const T* t;
  SoftmaxView view;
  TargetBounds<T> bounds;
  LabelNote note;
  template <typename>
  CREMA_HD T operator()(int64_t position, int64_t row, int64_t column) const {
    const int64_t k = row + column;
    const int64_t i =
        (position / view.inner * view.classes + k) * view.inner + position % view.inner;
    if (!bounds.has(t[i])) note.write(i, t[i]);
    return t[i];
  }
};

template <typename T>
struct ScoreGradient {
  const T *p, *t, *total, *weight;
  SoftmaxView view;
  T share;
  T* dx;
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t i = row * view.inner + column;
    const T all = total[row / view.classes * view.inner + column];
    dx[i] = (p[i] * all - t[i]) * (share * *weight);
  }
};

class SoftmaxCrossEntropyLossLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::loss, .labels = LabelKind::answers, .activation = "Softmax"};

  explicit SoftmaxCrossEntropyLossLayer(bool by_values = false) : by_values_(by_values) {}

 private:
  Arity bottoms() const override { return {2, 2}; }
  Arity tops() const override { return {1, 2}; }
  bool is_loss() const override { return true; }
  LayerTraits traits() const override { return {.reads = {true, false}}; }
  bool differentiable(int bottom) const override { return bottom == 0; }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    axis_ = bottoms[0].canonical_axis(params<SoftmaxParameter>().axis());
    require(!params<LossParameter>().has_ignore_label(),
            "loss_param has ignore_label, but the targets are shares of the classes, not labels; "
            "a position whose targets are all 0 costs nothing");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &t = bottoms[1];
    require(x.count() == t.count(), "there must be one target for each score, but the bottoms are ",
            x.brief(), " and ", t.brief());
    std::vector<Shape> tops = {Shape()};
    if (message().top_size() > 1) tops.push_back(x);
    // saved: p, the sums of t, and the record of a target out of range
    return {tops, {{x, {}}, {{positions(x)}, {}}, {{LabelNote::kCount}, DType::i32, true}}};
  }

  int64_t positions(const Shape& x) const { return x.count(0, axis_) * x.count(axis_ + 1); }
  LossNormalizer normalizer(const Shape& x) const {
    const int64_t examples = by_values_ ? x.count() : positions(x);
    return loss_normalizer(params<LossParameter>(), LossParameter::VALID, x[0], examples);
  }
  LossParts loss_parts(const std::vector<Shape>& bottoms) const override {
    return axis_ == 0 ? LossParts::none(kSoftmaxOverBatch) : normalizer(bottoms[0]).parts();
  }
  SoftmaxView view(const Tensor& x) const { return SoftmaxView::of(x.shape(), x.format(), axis_); }

  static TargetRange range() {
    return {.advice =
                "the targets of a position are shares of its classes, which add up to 1; images "
                "of labels with as many channels as there are classes, such as RGBA, must "
                "become images of one channel with the classes' numbers"};
  }
  static int64_t each(const Shape& x) { return x[0] > 0 ? x.count() / x[0] : 1; }
  void check(Context& context, const Forward& pass) const override {
    check_target_note(context, pass.saved[2], range());
  }

  void forward(Context& context, const Forward& pass) const override {
    check_targets(pass.bottom[1], range(), each(pass.bottom[1].shape()));
    const Tensor &x = pass.bottom[0], &t = pass.bottom[1], &p = pass.saved[0];
    const SoftmaxView view = this->view(x);
    softmax_forward(context, view, x, p);
    on(x, [&]<typename T>() {
      const SoftCrossEntropy<T> terms{p.data<T>(), t.data<T>()};
      sum_loss<T>(context, 1, x.count(), terms, normalizer(x.shape()), {}, pass.top[0]);
      const SumExtent each_position = view.inner == 1
                                          ? SumExtent{view.positions(), 1, view.classes}
                                          : SumExtent{view.positions(), view.classes, 1};
      const LabelNote note{pass.saved[2].data<int32_t>(), 0, each(t.shape()), pass.pass,
                           pass.live_pass};
      parallel_sum<T>(context, each_position,
                      TargetOf<T>{t.data<T>(), view, range().template bounds<T>(), note},
                      {pass.saved[1].data<T>()});
      if (pass.top.size() > 1)
        parallel_for(context, x.count(), Terms<T>{terms, pass.top[1].data<T>()});
    });
  }

  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    const Tensor& x = pass.bottom[0];
    on(x, [&]<typename T>() {
      const ScoreGradient<T> gradient{pass.saved[0].data<T>(),
                                      pass.bottom[1].data<T>(),
                                      pass.saved[1].data<T>(),
                                      pass.top_diff[0].data<T>(),
                                      view(x),
                                      static_cast<T>(1 / normalizer(x.shape()).constant),
                                      pass.bottom_diff[0].data<T>()};
      parallel_rows(context, x.count() / gradient.view.inner, gradient.view.inner, gradient);
    });
  }

  int axis_ = 1;
  const bool by_values_;  // divided by the count of all scores
};

}  // namespace
REGISTER_LAYER(SoftmaxCrossEntropy2Loss, SoftmaxCrossEntropyLossLayer);
REGISTER_LAYER(SoftmaxCrossEntropyLoss, SoftmaxCrossEntropyLossLayer, true);
}  // namespace crema

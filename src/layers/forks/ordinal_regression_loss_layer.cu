// OrdinalRegressionLoss (a fork, for ages): for each of K thresholds, whether the label is above
// it.
//   loss = 1 / N * sum over n and k of -log(p[n,k])    p: softmax of x[n,2k], "no", and x[n,2k+1],
//   "yes", at the correct answer, which is yes where k < label
// Shapes: x (N, 2K) or (N, 2K, 1, 1), labels (N), integers from 0 to K; the loss is a scalar.
// Parameters: none. That fork's file of threshold weights is not supported.
// Gradient: dx = (p of its answer, minus 1 if that is correct) / N, times the loss weight; none for
// labels.
#include "kernels/core/labels.h"
#include "kernels/core/pointwise.h"
#include "kernels/core/pointwise_math.h"
#include "kernels/core/reduce.h"
#include "layers/layer.h"

namespace crema {
namespace {

template <typename T>
struct ThresholdLoss {
  const T* x;
  ClassLabels<T> labels;  // classes: K + 1
  LabelNote note;
  // By how much the wrong answer exceeds the correct one.
  CREMA_HD T lead(int64_t n, int64_t k) const {
    const int label = labels.at(n);
    const T* pair = x + 2 * (n * (labels.classes - 1) + k);
    return label < 0 ? T(NAN) : k < label ? pair[0] - pair[1] : pair[1] - pair[0];
  }
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t n, int64_t k) const {
    if (k == 0 && labels.at(n) < 0) note.write(n, labels.labels[n]);
    return softplus_of(lead(n, k));
  }
};

template <typename T>
struct ThresholdGradient {
  ThresholdLoss<T> loss;
  const T* weight;
  T share;
  T* dx;
  CREMA_HD void operator()(int64_t n, int64_t k) const {
    const T slope = sigmoid_of(loss.lead(n, k)) * share * *weight;
    const bool yes = k < loss.labels.at(n);
    T* pair = dx + 2 * (n * (loss.labels.classes - 1) + k);
    pair[0] = yes ? slope : -slope;
    pair[1] = -pair[0];
  }
};

class OrdinalRegressionLossLayer : public Layer {
  Arity bottoms() const override { return {2, 2}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  BackwardReads reads() const override { return {true, false}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &labels = bottoms[1];
    require(x.axes() > 1 && x.count(1) % 2 == 0,
            "there must be two scores for each threshold, an even number, but the bottom is ",
            x.brief());
    require(labels.count() == x[0], "there must be one label for each of ", x[0],
            " examples, but the labels are ", labels.brief());
    return {{Shape()}, {{{LabelNote::kCount}, DType::i32, true}}};
  }

  template <typename T>
  ThresholdLoss<T> loss(const std::vector<Tensor>& bottom) const {
    return {bottom[0].data<T>(), {bottom[1].data<T>(), bottom[0].shape().count(1) / 2 + 1}, {}};
  }

  void forward(Context& context, const Forward& pass) override {
    const int64_t batch = pass.bottom[0].shape()[0];
    const int64_t thresholds = pass.bottom[0].shape().count(1) / 2;
    check_labels(pass.bottom[1], thresholds + 1, 1, std::nullopt);
    on(pass.bottom[0], [&]<typename T>() {
      ThresholdLoss<T> terms = loss<T>(pass.bottom);
      terms.note = {pass.saved[0].data<int32_t>(), thresholds + 1, 1, pass.pass, pass.live_pass};
      parallel_sum<T>(context, {1, batch, thresholds}, terms,
                      {pass.top[0].data<T>(), T(1) / static_cast<T>(batch)});
    });
  }

  void backward(Context& context, const Backward& pass) override {
    if (!pass.bottom_diff[0]) return;
    const int64_t batch = pass.bottom[0].shape()[0];
    const int64_t thresholds = pass.bottom[0].shape().count(1) / 2;
    on(pass.bottom[0], [&]<typename T>() {
      parallel_rows(
          context, batch, thresholds,
          ThresholdGradient<T>{loss<T>(pass.bottom), pass.top_diff[0].data<T>(),
                               T(1) / static_cast<T>(batch), pass.bottom_diff[0].data<T>()});
    });
  }

  void check(Context& context, const Forward& pass) const override {
    check_label_note(context, pass.saved[0]);
  }
};

}  // namespace
REGISTER_LAYER(OrdinalRegressionLoss, OrdinalRegressionLossLayer);
}  // namespace crema

// OrdinalRegressionLoss (a fork, for ages): for each of K thresholds, whether the label is above
// it.
//   loss = 1 / N * sum over n and k of -log(p[n,k])    p: softmax of x[n,2k], "no", and x[n,2k+1],
//   "yes", at the correct answer, which is yes where k < label
// Shapes: x (N, 2K) or (N, 2K, 1, 1), labels (N), integers from 0 to K; the loss is a scalar.
// Parameters: none. That fork's file of threshold weights is not supported.
// Gradient: dx = (p of its answer, minus 1 if that is correct) / N, times the loss weight; none for
// labels.
#include "kernels/pointwise/pointwise_math.h"
#include "layers/loss/labelled_loss.h"

namespace crema {
namespace {

template <typename T>
struct Thresholds {
  const T* x;
  NotedLabels<T> labels;  // classes: K + 1

  CREMA_HD int64_t pair(int64_t n, int64_t k) const { return 2 * (n * (labels.classes - 1) + k); }
  // The amount by which the wrong answer exceeds the correct one.
  CREMA_HD T lead(int64_t n, int64_t k) const {
    const int label = labels.at(n);
    const T* scores = x + pair(n, k);
    return label < 0 ? T(NAN) : k < label ? scores[0] - scores[1] : scores[1] - scores[0];
  }
  CREMA_HD T loss(int64_t n, int64_t k) const {
    if (k == 0) labels.note(n);
    return softplus_of(lead(n, k));
  }
  CREMA_HD void gradient(int64_t n, int64_t k, const LossScale<T>& scale, T* dx) const {
    const T slope = sigmoid_of(lead(n, k)) * scale.share * scale.weight;
    const bool yes = k < labels.at(n);
    T* scores = dx + pair(n, k);
    scores[0] = yes ? slope : -slope;
    scores[1] = -scores[0];
  }
};

class OrdinalRegressionLossLayer : public LabelledLoss<OrdinalRegressionLossLayer> {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::loss, .labels = LabelKind::classes};

  Inference shapes(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &labels = bottoms[1];
    require(x.axes() > 1 && x.count(1) % 2 == 0,
            "there must be two scores for each threshold, an even number, but the bottom is ",
            x.brief());
    require(labels.count() == x[0], "there must be one label for each of ", x[0],
            " examples, but the labels are ", labels.brief());
    return {{Shape()}, {}};
  }
  LabelRange range(const Shape& x) const override { return {x.count(1) / 2 + 1}; }
  SumExtent extent(const Shape& x) const { return {1, x[0], x.count(1) / 2}; }
  template <typename T>
  Thresholds<T> terms(const LossInput& in) const {
    return {in.at<T>(0), labels<T>(in)};
  }
};

}  // namespace
REGISTER_LAYER(OrdinalRegressionLoss, OrdinalRegressionLossLayer);
}  // namespace crema

// MultinomialLogisticLoss: cross-entropy of given probabilities, such as those of a Softmax, with
// integer labels. SoftmaxWithLoss computes both more accurately.
//   loss = -1 / N * sum of log(p[n,label])    p is clamped to at least 1e-20, as in Caffe
// Shapes: p (N, K...), labels (N); the loss is a scalar.
// Parameters: none.
// Gradient: dp[n,label] = -1 / (N * p[n,label]), times the loss weight, 0 elsewhere; none for the
// labels.
#include "layers/loss/labelled_loss.h"

namespace crema {
namespace {

template <typename T>
struct LabelLog {
  const T* p;
  NotedLabels<T> labels;

  // NaN for a label out of range.
  CREMA_HD T probability(int64_t image) const {
    const int label = labels.at(image);
    const T value = label < 0 ? T(NAN) : p[image * labels.classes + label], minimum = T(1e-20);
    return value < minimum ? minimum : value;
  }
  CREMA_HD T loss(int64_t, int64_t image) const {
    labels.note(image);
    return log(probability(image));
  }
  CREMA_HD T gradient(int64_t image, int64_t k, const LossScale<T>& scale) const {
    const T slope = -scale.value() / probability(image);
    return k == labels.at(image) ? slope : T(0) * slope;
  }
};

class MultinomialLogisticLossLayer : public LabelledLoss<MultinomialLogisticLossLayer> {
 public:
  Inference shapes(const std::vector<Shape>& bottoms) const override {
    require_label_per_image(bottoms, "probabilities");
    return {{Shape()}, {}};
  }
  SumExtent extent(const Shape& p) const { return {1, 1, p[0]}; }
  SumExtent gradient_extent(const Shape& p) const { return {1, p[0], p.count(1)}; }
  double factor() const { return -1; }
  template <typename T>
  LabelLog<T> terms(const LossInput& in) const {
    return {in.at<T>(0), labels<T>(in)};
  }
};

}  // namespace
REGISTER_LAYER(MultinomialLogisticLoss, MultinomialLogisticLossLayer);
}  // namespace crema

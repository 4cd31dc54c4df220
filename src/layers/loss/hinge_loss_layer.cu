// HingeLoss: one class against all others with a margin of 1.
//   loss = 1 / N * sum over n, k of m[n,k]^p   with m[n,k] = max(0, 1 - t * x[n,k])
//   t = 1 for the label's class, else -1; p = 1 (norm: L1) or 2 (norm: L2)
// Shapes: scores x (N, K...), labels (N); the loss is a scalar.
// Parameters: none.
// Gradient: dx[n,k] = -t * p * m^(p-1) / N where m > 0, times the loss weight; none for the labels.
#include "layers/loss/labelled_loss.h"

namespace crema {
namespace {

template <typename T>
struct Hinge {
  const T* x;
  NotedLabels<T> labels;
  bool squared;

  // 1 for the label's class, -1 for others; NaN for a label out of range.
  CREMA_HD T target(int64_t image, int64_t k) const {
    const T label = labels.labels[image];
    if (!is_class(label, labels.classes)) return T(NAN);
    return static_cast<int64_t>(label) == k ? T(1) : T(-1);
  }
  CREMA_HD T margin(int64_t image, int64_t k) const {
    const T m = 1 - target(image, k) * x[image * labels.classes + k];
    return m < 0 ? T(0) : m;
  }
  CREMA_HD T loss(int64_t image, int64_t k) const {
    labels.note(image);
    const T m = margin(image, k);
    return squared ? m * m : m;
  }
  CREMA_HD T gradient(int64_t image, int64_t k, const LossScale<T>& scale) const {
    const T m = margin(image, k);
    const T slope = squared ? 2 * m : (m > 0 ? T(1) : T(0));
    return -target(image, k) * slope * scale.share * scale.weight;
  }
};

class HingeLossLayer : public LabelledLoss<HingeLossLayer> {
 public:
  Inference shapes(const std::vector<Shape>& bottoms) const override {
    require_label_per_image(bottoms, "scores");
    return {{Shape()}, {}};
  }
  SumExtent extent(const Shape& x) const { return {1, x[0], x.count(1)}; }
  template <typename T>
  Hinge<T> terms(const LossInput& in) const {
    return {in.at<T>(0), labels<T>(in),
            params<HingeLossParameter>().norm() == HingeLossParameter::L2};
  }
};

}  // namespace
REGISTER_LAYER(HingeLoss, HingeLossLayer);
}  // namespace crema

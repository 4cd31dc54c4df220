// EuclideanLoss: half the mean squared distance of two blobs, for regression. WeightedEuclideanLoss
// (forks): the same with a weight for each value.
//   loss = 1 / (2N) * sum of w * (a - b)^2
// Shapes: a and b have the same batch N and number of values; w has as many, and is 1 without a
// third bottom; the loss is a scalar.
// Parameters: none.
// Gradient: da = w * (a - b) / N, db = -da, times the loss weight; none for w.
#include "layers/loss/pair_loss.h"

namespace crema {
namespace {

template <typename T>
struct WeightedDifference {
  const T *a, *b, *weights;  // weights: or null
  CREMA_HD T at(int64_t i) const { return (weights ? weights[i] : T(1)) * (a[i] - b[i]); }
  CREMA_HD T loss(int64_t, int64_t i) const { return at(i) * (a[i] - b[i]); }
  CREMA_HD T gradient(int64_t i, const LossScale<T>& scale) const { return scale.value() * at(i); }
};

class EuclideanLossLayer : public PairLoss<EuclideanLossLayer> {
 public:
  explicit EuclideanLossLayer(bool weighted = false) : weighted_(weighted) {}
  Arity bottoms() const override { return weighted_ ? Arity{3, 3} : Arity{2, 2}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require_like_batches(bottoms);
    require_weights(bottoms);
    return {{Shape()}, {}};
  }
  double factor() const { return 0.5; }
  template <typename T>
  WeightedDifference<T> terms(const LossInput& in) const {
    return {in.at<T>(0), in.at<T>(1), in.at<T>(2)};
  }

 private:
  const bool weighted_;  // the third bottom has weights
};

}  // namespace
REGISTER_LAYER(EuclideanLoss, EuclideanLossLayer);
REGISTER_LAYER(WeightedEuclideanLoss, EuclideanLossLayer, true);
}  // namespace crema

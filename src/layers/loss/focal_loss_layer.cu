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
#include "layers/loss/labelled_softmax_loss.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

template <typename T>
struct Focal {
  LabelledPositions<T> positions;
  T alpha, gamma;

  // Probability of the label; kept off 0 and 1, so that its logarithm and powers of 1 - p are
  // finite.
  CREMA_HD T probability(int64_t row, int64_t column, int label) const {
    const T value = positions.probability(row, column, label < 0 ? 0 : label);
    const T minimum = T(1.17549435e-38), maximum = T(1) - T(1e-7);
    return value < minimum ? minimum : value > maximum ? maximum : value;
  }
  CREMA_HD T loss(int64_t row, int64_t column) const {
    const int label = positions.noted(row, column);
    const T own = probability(row, column, label);
    const T loss = -alpha * pow(1 - own, gamma) * log(own);
    return positions.if_class(label, loss);
  }
  CREMA_HD T counted(int64_t row, int64_t column) const { return positions.counted(row, column); }
  // Derivative of a position's loss with respect to the logarithm of its p.
  CREMA_HD T slope(int64_t row, int64_t column, int label) const {
    const T own = probability(row, column, label);
    return alpha * pow(1 - own, gamma - 1) * (gamma * own * log(own) - (1 - own));
  }
  CREMA_HD void gradient(int64_t row, int64_t column, const LossScale<T>& scale, T* dx) const {
    const int label = positions.label(row, column);
    const T slope_of_all = slope(row, column, label) * scale.value();
    positions.put(row, column, dx, [&](int64_t k, T p) {
      return positions.if_class(label, slope_of_all * ((k == label ? T(1) : T(0)) - p));
    });
  }
};

class FocalLossLayer : public LabelledSoftmaxLoss<FocalLossLayer> {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::loss, .labels = LabelKind::scored, .activation = "Softmax"};

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    axis_ = bottoms[0].canonical_axis(params<SoftmaxParameter>().axis());
    require(p().type() == FocalLossParameter::ORIGIN, "focal_loss_param.type is ",
            FocalLossParameter::Type_Name(p().type()), ", but only ORIGIN is supported");
    require(p().gamma() >= 0 && p().alpha() > 0, "alpha is ", p().alpha(), " and gamma ",
            p().gamma(), ", but alpha must be positive and gamma at least 0");
  }
  template <typename T>
  Focal<T> terms(const LossInput& in) const {
    return {positions<T>(in), static_cast<T>(p().alpha()), static_cast<T>(p().gamma())};
  }

 private:
  const FocalLossParameter& p() const { return params<FocalLossParameter>(); }
};

}  // namespace
REGISTER_LAYER(FocalLoss, FocalLossLayer);
}  // namespace crema

// SmoothL1Loss: squared near zero, absolute elsewhere: the loss of box coordinates in Fast R-CNN.
//   loss = 1 / D * sum of v * f(u * (a - b))
//   f(z) = s / 2 * z^2 where |z| < 1 / s, |z| - 1 / (2 s) elsewhere, with s = sigma^2
// D, by loss_param's normalization: FULL and VALID the number of positions (batch and spatial
// axes), BATCH_SIZE the batch, NONE 1, PRE_FIXED pre_fixed_normalizer; without loss_param the
// batch, as in Fast R-CNN, but the number of positions for SmoothL1LossOHEM (R-FCN), which is the
// same otherwise.
// Shapes: predictions a and targets b (N, C, ...); inside weights u and outside weights v, both
// optional, have the same shape. The loss is a scalar; a second top (N, 1, ...) has the sum of each
// position.
// Parameters: none.
// Gradient: da = v * u * f'(u * (a - b)) / D, db = -da, times the loss weight; none for the weights
// and from the second top.
#include "layers/loss/loss_layer.h"

namespace crema {
namespace {

template <typename T>
struct SmoothL1 {
  const T *a, *b, *inside, *outside;  // inside, outside: may be null
  T s;
  T side;  // gradient: 1 for a, -1 for b
  CREMA_HD T z(int64_t i) const { return (inside ? inside[i] : T(1)) * (a[i] - b[i]); }
  CREMA_HD T loss(int64_t, int64_t i) const {
    const T at = z(i), size = at < 0 ? -at : at;
    return (outside ? outside[i] : T(1)) * (size < 1 / s ? s / 2 * at * at : size - T(0.5) / s);
  }
  CREMA_HD T gradient(int64_t i, const LossScale<T>& scale) const {
    const T at = z(i), size = at < 0 ? -at : at;
    const T inner = size < 1 / s ? s * at : (at > 0 ? T(1) : T(-1));
    const T slope = (outside ? outside[i] : T(1)) * (inside ? inside[i] : T(1)) * inner;
    return slope * (side * scale.value());
  }
};

template <typename T>
struct PositionLoss {
  SmoothL1<T> f;
  int64_t channels, inner;
  T* y;
  CREMA_HD void operator()(int64_t position) const {
    const int64_t first = position / inner * channels * inner + position % inner;
    T sum = 0;
    for (int64_t c = 0; c < channels; ++c) sum += f.loss(0, first + c * inner);
    y[position] = sum;
  }
};

class SmoothL1LossLayer : public TermLoss<SmoothL1LossLayer> {
 public:
  explicit SmoothL1LossLayer(bool ohem = false) : ohem_(ohem) {}
  Arity bottoms() const override { return {2, 4}; }
  Arity tops() const override { return {1, 2}; }
  bool differentiable(int bottom) const override { return bottom < 2; }
  LayerTraits traits() const override {
    LayerTraits traits = TermLoss<SmoothL1LossLayer>::traits();
    traits.order_rule = order_rule();
    return traits;
  }
  OrderRule order_rule() const {
    return message().top_size() > 1 ? OrderRule::row_major : OrderRule::any;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const float sigma = params<SmoothL1LossParameter>().sigma();
    require(sigma > 0, "sigma must be positive, but is ", sigma);
    const Shape& x = bottoms[0];
    const char* names[] = {"predictions", "targets", "inside weights", "outside weights"};
    for (size_t i = 1; i < bottoms.size(); ++i) {
      require(x.axes() > 0 && bottoms[i].count() == x.count() && bottoms[i][0] == x[0], "the ",
              names[i], " must have the shape of the predictions, ", x.brief(), ", but have ",
              bottoms[i].brief());
    }
    Shape positions = x;
    if (x.axes() > 1) positions[1] = 1;
    return {tops_with(positions), {}};
  }

  LossNormalizer normalizer(const Shape& x) const {
    const auto when_absent = ohem_ ? LossParameter::VALID : LossParameter::BATCH_SIZE;
    LossNormalizer normalizer = loss_normalizer(params<LossParameter>(), when_absent, x[0],
                                                x[0] * x.count(x.axes() > 1 ? 2 : 1));
    normalizer.by_valid = false;  // all positions count
    return normalizer;
  }
  double divisor(const Shape& x) const { return normalizer(x).constant; }
  template <typename T>
  SmoothL1<T> terms(const LossInput& in) const {
    const auto sigma = static_cast<T>(params<SmoothL1LossParameter>().sigma());
    const T side = in.of == 0 ? T(1) : T(-1);
    return {in.at<T>(0), in.at<T>(1), in.at<T>(2), in.at<T>(3), sigma * sigma, side};
  }

  void forward(Context& context, const Forward& pass) const override {
    TermLoss::forward(context, pass);
    if (pass.top.size() == 1) return;
    const Shape& x = pass.bottom[0].shape();
    on(pass.bottom[0], [&]<typename T>() {
      const int64_t channels = x.axes() > 1 ? x[1] : 1, positions = pass.top[1].count();
      const PositionLoss<T> loss{terms<T>(loss_input(pass)), channels, positions / x[0],
                                 pass.top[1].data<T>()};
      parallel_for(context, positions, loss, 256);
    });
  }

 private:
  const bool ohem_;  // SmoothL1LossOHEM
};

}  // namespace
REGISTER_LAYER(SmoothL1Loss, SmoothL1LossLayer);
REGISTER_LAYER(SmoothL1LossOHEM, SmoothL1LossLayer, true);
}  // namespace crema

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
#include "kernels/core/pointwise.h"
#include "kernels/core/reduce.h"
#include "layers/layer.h"
#include "layers/loss/loss_normalizer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

template <typename T>
struct SmoothL1 {
  const T *a, *b, *inside, *outside;  // inside, outside: may be null
  T s;
  CREMA_HD T z(int64_t i) const { return (inside ? inside[i] : T(1)) * (a[i] - b[i]); }
  CREMA_HD T loss(int64_t i) const {
    const T at = z(i), size = at < 0 ? -at : at;
    return (outside ? outside[i] : T(1)) * (size < 1 / s ? s / 2 * at * at : size - T(0.5) / s);
  }
  CREMA_HD T slope(int64_t i) const {
    const T at = z(i), size = at < 0 ? -at : at;
    const T inner = size < 1 / s ? s * at : (at > 0 ? T(1) : T(-1));
    return (outside ? outside[i] : T(1)) * (inside ? inside[i] : T(1)) * inner;
  }
};

template <typename T>
struct LossTerm {
  SmoothL1<T> f;
  template <typename>
  CREMA_HD T operator()(int64_t, int64_t, int64_t i) const {
    return f.loss(i);
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
    for (int64_t c = 0; c < channels; ++c) sum += f.loss(first + c * inner);
    y[position] = sum;
  }
};

template <typename T>
struct SmoothL1Gradient {
  SmoothL1<T> f;
  const T* weight;
  T share;
  T* dx;
  CREMA_HD void operator()(int64_t i) const { dx[i] = f.slope(i) * (share * *weight); }
};

class SmoothL1LossLayer : public Layer {
 public:
  explicit SmoothL1LossLayer(bool ohem = false) : ohem_(ohem) {}

 private:
  Arity bottoms() const override { return {2, 4}; }
  Arity tops() const override { return {1, 2}; }
  bool is_loss() const override { return true; }
  bool differentiable(int bottom) const override { return bottom < 2; }
  OrderRule order_rule() const override {
    return message().top_size() > 1 ? OrderRule::row_major : OrderRule::any;
  }
  BackwardReads reads() const override { return {true, false}; }

  double divisor(const Shape& x) const {
    const auto when_absent = ohem_ ? LossParameter::VALID : LossParameter::BATCH_SIZE;
    return loss_normalizer(params<LossParameter>(), when_absent, x[0],
                           x[0] * x.count(x.axes() > 1 ? 2 : 1))
        .constant;
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
    std::vector<Shape> tops = {Shape()};
    if (message().top_size() > 1) tops.push_back(positions);
    return {tops, {}};
  }

  template <typename T>
  SmoothL1<T> function(const std::vector<Tensor>& bottom) const {
    const auto sigma = static_cast<T>(params<SmoothL1LossParameter>().sigma());
    const auto at = [&](size_t i) { return i < bottom.size() ? bottom[i].data<T>() : nullptr; };
    return {at(0), at(1), at(2), at(3), sigma * sigma};
  }

  void forward(Context& context, const Forward& pass) override {
    const Shape& x = pass.bottom[0].shape();
    on(pass.bottom[0], [&]<typename T>() {
      const SmoothL1<T> f = function<T>(pass.bottom);
      parallel_sum<T>(context, {1, 1, x.count()}, LossTerm<T>{f},
                      {pass.top[0].data<T>(), static_cast<T>(1 / divisor(x))});
      if (pass.top.size() == 1) return;
      const int64_t channels = x.axes() > 1 ? x[1] : 1, positions = pass.top[1].count();
      parallel_for(context, positions,
                   PositionLoss<T>{f, channels, positions / x[0], pass.top[1].data<T>()}, 256);
    });
  }

  void backward(Context& context, const Backward& pass) override {
    for (int i = 0; i < 2; ++i) {
      const Tensor& dx = pass.bottom_diff[i];
      if (!dx) continue;
      on(dx, [&]<typename T>() {
        const T share = static_cast<T>((i == 0 ? 1 : -1) / divisor(dx.shape()));
        parallel_for(context, dx.count(),
                     SmoothL1Gradient<T>{function<T>(pass.bottom), pass.top_diff[0].data<T>(),
                                         share, dx.data<T>()});
      });
    }
  }
  const bool ohem_;  // SmoothL1LossOHEM
};

}  // namespace
REGISTER_LAYER(SmoothL1Loss, SmoothL1LossLayer);
REGISTER_LAYER(SmoothL1LossOHEM, SmoothL1LossLayer, true);
}  // namespace crema

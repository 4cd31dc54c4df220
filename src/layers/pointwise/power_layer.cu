// Power: scales, shifts and raises to a power.
//   y = (shift + scale * x) ^ power
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy * power * scale * (shift + scale * x) ^ (power - 1).
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

// power 1; and power 0 or scale 0, where y is the constant `shift`. The gradient is the same with
// shift 0.
struct Affine {
  float scale, shift;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return scale * x + shift;
  }
};

struct Square {
  float scale, shift;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    const T base = scale * x + shift;
    return base * base;
  }
};

struct SquareGradient {
  float scale, shift;
  template <typename T>
  CREMA_HD T operator()(T dy, T x) const {
    return dy * 2 * scale * (scale * x + shift);
  }
};

struct Power {
  float power, scale, shift;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return std::pow(scale * x + shift, T(power));
  }
};

struct PowerGradient {
  float power, scale, shift;
  template <typename T>
  CREMA_HD T operator()(T dy, T x) const {
    return dy * power * scale * std::pow(scale * x + shift, T(power) - 1);
  }
};

class PowerLayer : public PointwiseLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::math, .elementwise = true};

 private:
  const PowerParameter& p() const { return params<PowerParameter>(); }
  bool constant() const { return p().power() == 0 || p().scale() == 0; }
  bool affine() const { return constant() || p().power() == 1; }
  LayerTraits traits() const override {
    LayerTraits traits = PointwiseLayer::traits();
    traits.in_place = affine();
    traits.reads = {!affine(), false};
    return traits;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    if (constant()) {
      pointwise(context, Affine{0, std::pow(p().shift(), p().power())}, y, x);  // 0 ^ 0 is 1
    } else if (p().power() == 1) {
      pointwise(context, Affine{p().scale(), p().shift()}, y, x);
    } else if (p().power() == 2) {
      pointwise(context, Square{p().scale(), p().shift()}, y, x);
    } else {
      pointwise(context, Power{p().power(), p().scale(), p().shift()}, y, x);
    }
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor &dx = pass.bottom_diff[0], &dy = pass.top_diff[0], &x = pass.bottom[0];
    if (affine()) {
      pointwise(context, Affine{constant() ? 0 : p().scale(), 0}, dx, dy);
    } else if (p().power() == 2) {
      pointwise(context, SquareGradient{p().scale(), p().shift()}, dx, dy, x);
    } else {
      pointwise(context, PowerGradient{p().power(), p().scale(), p().shift()}, dx, dy, x);
    }
  }
};

}  // namespace
REGISTER_LAYER(Power, PowerLayer);
}  // namespace crema

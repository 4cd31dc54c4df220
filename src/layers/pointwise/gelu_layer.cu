// GELU: the value times the probability that a standard normal variable is below it.
//   y = x * P(x)   with P(x) = (1 + erf(x / sqrt(2))) / 2
//   y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) with approximate: true
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy * (P(x) + x * exp(-x^2 / 2) / sqrt(2 * pi)); that of the approximation
// likewise.
#include "kernels/pointwise/gelu.h"
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

class GeluLayer : public PointwiseLayer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::activation, .elementwise = true, .keeps_zero = true};

 private:
  // The gradient needs x, which y does not determine.
  LayerTraits traits() const override {
    LayerTraits traits = PointwiseLayer::traits();
    traits.in_place = false;
    traits.reads = {true, false};
    return traits;
  }

  template <typename Body>
  void with_function(const Body& body) const {
    params<GELUParameter>().approximate() ? body(Gelu<true>{}) : body(Gelu<false>{});
  }
  void forward(Context& context, const Forward& pass) const override {
    with_function([&]<typename F>(const F& f) {
      pointwise(context, ValueOf<F>{f}, pass.top[0], pass.bottom[0]);
    });
  }
  void backward(Context& context, const Backward& pass) const override {
    with_function([&]<typename F>(const F& f) {
      pointwise(context, GradientOf<F>{f}, pass.bottom_diff[0], pass.top_diff[0], pass.bottom[0]);
    });
  }
};

}  // namespace
REGISTER_LAYER(GELU, GeluLayer);
}  // namespace crema

// Noise (forks): adds random numbers, in training.
//   y = x + n
//   gaussian_std: n ~ N(bias, gaussian_std^2); uniform_range: n from bias - uniform_range to bias +
//   uniform_range; neither: y = x
//   filler_param (another fork): "gaussian", N(mean, std^2), or "uniform", from min to max; also in
//   testing
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy. The noise is a function of seed, layer and pass.
#include "kernels/pointwise/random_values.h"
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

// Real: double for float64, where float's rounding would be visible.
template <typename Real>
struct AddNoise {
  bool normal;
  Real base, spread;
  CREMA_HD FourNumbers<Real> draw(const PassRandom& random, int64_t index) const {
    const Random::Four words = random.get().four(index);
    return normal ? normal_numbers<Real>(words) : uniform_numbers<Real>(words);
  }
  template <typename T>
  CREMA_HD T operator()(Real number, T x) const {
    return x + static_cast<T>(base + spread * number);
  }
};

class NoiseLayer : public PointwiseLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::dropout, .elementwise = true};

 private:
  // Random numbers are those of the samples of axis 0.
  bool independent_along(int, int axis, const std::vector<Shape>&) const override {
    return axis == 0;
  }
  const NoiseLayerParameter& p() const { return params<NoiseLayerParameter>(); }
  LayerTraits traits() const override {
    LayerTraits traits = PointwiseLayer::traits();
    traits.is_view = spread_ == 0 && base_ == 0;
    traits.reads = {false, false};
    return traits;
  }

  // y = x + base + spread * n, n ~ N(0, 1) or from 0 to 1.
  void setup(Context&, const std::vector<Shape>&) override {
    const FillerParameter& filler = p().filler_param();
    if (p().has_filler_param()) {
      normal_ = filler.type() == "gaussian";
      require(normal_ || filler.type() == "uniform", "the filler of noise_param has type \"",
              filler.type(), "\", but noise is \"gaussian\" or \"uniform\"");
      base_ = normal_ ? filler.mean() : filler.min();
      spread_ = normal_ ? filler.std() : filler.max() - filler.min();
    } else if (training() && p().has_gaussian_std()) {
      normal_ = true;
      base_ = p().bias();
      spread_ = p().gaussian_std();
    } else if (training() && p().has_uniform_range()) {
      base_ = p().bias() - p().uniform_range();
      spread_ = 2 * p().uniform_range();
    }
    require(spread_ >= 0, "noise_param has ",
            normal_ ? "a negative deviation" : "a range that ends before it begins",
            ", but noise needs one of at least 0");
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor &x = pass.bottom[0], &y = pass.top[0];
    if (traits().is_view) return pointwise_copy(context, y, x);
    const PassRandom random = context.random(id(), pass.pass, pass.live_pass);
    const BatchShare samples = pass.share;
    if (x.dtype() == DType::f64) {
      change_randomly(context, random, samples, AddNoise<double>{normal_, base_, spread_}, x, y);
    } else {
      change_randomly(context, random, samples, AddNoise<float>{normal_, base_, spread_}, x, y);
    }
  }
  void backward(Context& context, const Backward& pass) const override {
    pointwise_copy(context, pass.bottom_diff[0], pass.top_diff[0]);
  }

  bool normal_ = false;
  float base_ = 0, spread_ = 0;
};

}  // namespace
REGISTER_LAYER(Noise, NoiseLayer);
}  // namespace crema

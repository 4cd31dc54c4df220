// ScaleTanH (HashNet): a TanH that becomes steeper in training, until codes are nearly -1 and 1.
//   y = tanh(s * x)    s = init_scale * (1 + gamma * t)^power
//   t: the number of passes up to this one, rounded down to a multiple of step_size; init_scale in
//   the test phase
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = s * dy * (1 - y^2).
#include <cmath>

#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/forks_hashing.pb.h"

namespace crema {
namespace {

struct Steepness {
  uint64_t pass;
  const uint64_t* live;  // when a CUDA graph replays the pass
  uint32_t step;
  double first, gamma, power;
  CREMA_HD double get() const {
    const uint64_t passes = (live ? *live : pass) + 1, t = passes - passes % step;
    return t == 0 ? first : first * pow(1 + gamma * static_cast<double>(t), power);
  }
};

struct SteepTanh {
  Steepness s;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return tanh(static_cast<T>(s.get()) * x);
  }
};

struct SteepTanhGradient {
  Steepness s;
  template <typename T>
  CREMA_HD T operator()(T dy, T y) const {
    return static_cast<T>(s.get()) * dy * (1 - y * y);
  }
};

class ScaleTanhLayer : public PointwiseLayer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::activation, .elementwise = true, .least = -1, .most = 1};

 private:
  const ScaleTanHParameter& p() const { return params<ScaleTanHParameter>(); }
  LayerTraits traits() const override {
    LayerTraits traits = PointwiseLayer::traits();
    traits.reads = {false, true};
    return traits;
  }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().step_size() > 0, "step_size is 0, but must be positive: passes between changes");
    require(p().gamma() >= 0, "gamma is ", p().gamma(), ", but must not be negative");
  }

  template <typename Pass>
  Steepness steepness(const Pass& pass) const {
    const double power = training() ? p().power() : 0;
    return {pass.pass, pass.live_pass, p().step_size(), p().init_scale(), p().gamma(), power};
  }
  void forward(Context& context, const Forward& pass) const override {
    pointwise(context, SteepTanh{steepness(pass)}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    pointwise(context, SteepTanhGradient{steepness(pass)}, pass.bottom_diff[0], pass.top_diff[0],
              pass.top[0]);
  }
};

}  // namespace
REGISTER_LAYER(ScaleTanH, ScaleTanhLayer);
}  // namespace crema

// Exp: a power of a base.
//   y = base ^ (shift + scale * x); base -1 stands for e
// Shapes: y as x, any. Parameters: none.
// Gradient: dx = dy * y * scale * log(base).
#include <cmath>

#include "kernels/pointwise.h"
#include "kernels/pointwise_math.h"
#include "layers/pointwise_layer.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

struct Exponential {
  double inner, outer;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return T(outer) * exp_of(T(inner) * x);
  }
};

struct ExponentialGradient {
  double inner;
  template <typename T>
  CREMA_HD T operator()(T dy, T y) const {
    return dy * y * T(inner);
  }
};

class ExpLayer : public PointwiseLayer {
  BackwardReads reads() const override { return {false, true}; }

  void setup(Context&, const std::vector<Shape>&) override {
    const ExpParameter& p = params<ExpParameter>();
    const double base = p.base();
    require(base == -1 || base > 0, "base must be above 0, or -1 for e, but is ", base);
    const double log_of_base = base == -1 ? 1 : std::log(base);
    inner_ = log_of_base * p.scale();
    outer_ = std::exp(log_of_base * p.shift());
  }

  void forward(Context& context, const Forward& pass) override {
    pointwise(context, Exponential{inner_, outer_}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) override {
    pointwise(context, ExponentialGradient{inner_}, pass.bottom_diff[0], pass.top_diff[0],
              pass.top[0]);
  }

  double inner_ = 1, outer_ = 1;  // y = outer * e ^ (inner * x)
};

}  // namespace
REGISTER_LAYER(Exp, ExpLayer);
}  // namespace crema

// Log: the logarithm of a scaled and shifted value.
//   y = log(shift + scale * x) / log(base); base -1 stands for e
// Shapes: y as x, any. Parameters: none.
// Gradient: dx = dy * scale / ((shift + scale * x) * log(base)).
#include <cmath>

#include "kernels/pointwise.h"
#include "layers/pointwise_layer.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

struct Logarithm {
  double scale, shift, factor;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return T(factor) * std::log(T(scale) * x + T(shift));
  }
};

struct LogarithmGradient {
  double scale, shift, factor;
  template <typename T>
  CREMA_HD T operator()(T dy, T x) const {
    return dy * T(factor * scale) / (T(scale) * x + T(shift));
  }
};

class LogLayer : public PointwiseLayer {
  const LogParameter& p() const { return params<LogParameter>(); }
  void setup(Context&, const std::vector<Shape>&) override {
    const double base = p().base();
    require(base == -1 || (base > 0 && base != 1),
            "base must be above 0 and not 1, or -1 for e, but is ", base);
    factor_ = base == -1 ? 1 : 1 / std::log(base);
  }
  bool in_place() const override { return false; }
  BackwardReads reads() const override { return {true, false}; }

  void forward(Context& context, const Forward& pass) override {
    pointwise(context, Logarithm{p().scale(), p().shift(), factor_}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) override {
    pointwise(context, LogarithmGradient{p().scale(), p().shift(), factor_}, pass.bottom_diff[0],
              pass.top_diff[0], pass.bottom[0]);
  }

  double factor_ = 1;  // 1 / log(base)
};

}  // namespace
REGISTER_LAYER(Log, LogLayer);
}  // namespace crema

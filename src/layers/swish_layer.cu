// Swish: the value times the sigmoid of it; SiLU is the same with beta 1.
//   y = x / (1 + exp(-beta * x))
// Shapes: y as x, any. Parameters: none.
// Gradient: dx = dy * (s + beta * x * s * (1 - s)) with s = 1 / (1 + exp(-beta * x)).
#include "kernels/pointwise.h"
#include "kernels/pointwise_math.h"
#include "layers/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

struct Swish {
  float beta;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    return x * sigmoid_of(T(beta) * x);
  }
};

struct SwishGradient {
  float beta;
  template <typename T>
  CREMA_HD T operator()(T dy, T x) const {
    const T s = sigmoid_of(T(beta) * x);
    return dy * (s + T(beta) * x * s * (T(1) - s));
  }
};

class SwishLayer : public PointwiseLayer {
  float beta() const { return params<SwishParameter>().beta(); }
  bool in_place() const override { return false; }
  BackwardReads reads() const override { return {true, false}; }

  void forward(Context& context, const Forward& pass) override {
    pointwise(context, Swish{beta()}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) override {
    pointwise(context, SwishGradient{beta()}, pass.bottom_diff[0], pass.top_diff[0],
              pass.bottom[0]);
  }
};

}  // namespace
REGISTER_LAYER(Swish, SwishLayer);
REGISTER_LAYER(SiLU, SwishLayer);
}  // namespace crema

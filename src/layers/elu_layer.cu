// ELU: x right of zero, an exponential that levels off at -alpha left of it.
//   y = x where x > 0, alpha * (exp(x) - 1) elsewhere
// Shapes: y as x, any. Parameters: none.
// Gradient: dx = dy where x > 0, (y + alpha) * dy elsewhere.
#include "kernels/pointwise.h"
#include "kernels/pointwise_math.h"
#include "layers/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

struct Elu {
  float alpha;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    const T left = alpha * (exp_of(x < 0 ? x : T(0)) - T(1));
    return x > 0 ? x : left;
  }
};

// alpha >= 0: the sign of y is the sign of x, and y + alpha = alpha * exp(x).
struct EluGradientFromTop {
  float alpha;
  template <typename T>
  CREMA_HD T operator()(T dy, T y) const {
    return dy * (y > 0 ? T(1) : y + alpha);
  }
};

struct EluGradientFromBottom {
  float alpha;
  template <typename T>
  CREMA_HD T operator()(T dy, T x) const {
    const T left = alpha * exp_of(x < 0 ? x : T(0));
    return dy * (x > 0 ? T(1) : left);
  }
};

class EluLayer : public PointwiseLayer {
  float alpha() const { return params<ELUParameter>().alpha(); }
  bool from_top() const { return alpha() >= 0; }
  bool in_place() const override { return from_top(); }
  BackwardReads reads() const override { return {!from_top(), from_top()}; }

  void forward(Context& context, const Forward& pass) override {
    pointwise(context, Elu{alpha()}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) override {
    if (from_top()) {
      pointwise(context, EluGradientFromTop{alpha()}, pass.bottom_diff[0], pass.top_diff[0],
                pass.top[0]);
    } else {
      pointwise(context, EluGradientFromBottom{alpha()}, pass.bottom_diff[0], pass.top_diff[0],
                pass.bottom[0]);
    }
  }
};

}  // namespace
REGISTER_LAYER(ELU, EluLayer);
}  // namespace crema

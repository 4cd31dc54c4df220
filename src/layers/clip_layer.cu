// Clip: keeps values within bounds.
//   y = min(max(x, min), max)
// Shapes: y as x, any. Parameters: none.
// Gradient: dx = dy where min <= x <= max, 0 elsewhere.
#include "kernels/pointwise.h"
#include "layers/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

struct Clip {
  float least, most;
  template <typename T>
  CREMA_HD T operator()(T x) const {
    const T bounded = x < T(least) ? T(least) : x;
    return bounded > T(most) ? T(most) : bounded;
  }
};

struct ClipGradient {
  float least, most;
  template <typename T>
  CREMA_HD T operator()(T dy, T x) const {
    return x >= T(least) && x <= T(most) ? dy : T(0);
  }
};

class ClipLayer : public PointwiseLayer {
  const ClipParameter& p() const { return params<ClipParameter>(); }
  void setup(Context&, const std::vector<Shape>&) override {
    require(has_params<ClipParameter>(),
            "Clip needs its bounds: clip_param { min: -1 max: 1 }, for example");
    require(p().min() <= p().max(), "min, ", p().min(), ", is larger than max, ", p().max());
  }
  bool in_place() const override { return false; }
  BackwardReads reads() const override { return {true, false}; }

  void forward(Context& context, const Forward& pass) override {
    pointwise(context, Clip{p().min(), p().max()}, pass.top[0], pass.bottom[0]);
  }
  void backward(Context& context, const Backward& pass) override {
    pointwise(context, ClipGradient{p().min(), p().max()}, pass.bottom_diff[0], pass.top_diff[0],
              pass.bottom[0]);
  }
};

}  // namespace
REGISTER_LAYER(Clip, ClipLayer);
}  // namespace crema

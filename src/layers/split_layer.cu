// Split: gives the same values to several readers. Nets insert it by themselves where a blob has
// more than one reader.
//   y0 = x, y1 = x, ...
// Shapes: all tops as x. Parameters: none.
// Gradient: dx = sum of all dy.
#include "kernels/pointwise.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

struct Add {
  template <typename T>
  CREMA_HD T operator()(T x, T y) const {
    return x + y;
  }
};

class SplitLayer : public Layer {
  Arity tops() const override { return {1, -1}; }
  OrderRule order_rule() const override { return OrderRule::any; }
  HalfRule half_rule() const override { return HalfRule::follows; }
  BackwardReads reads() const override { return {false, false}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    return {std::vector<Shape>(message().top_size(), bottoms[0]), {}};
  }

  void forward(Context& context, const Forward& pass) override {
    for (const Tensor& y : pass.top) pointwise_copy(context, y, pass.bottom[0]);
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor& dx = pass.bottom_diff[0];
    const Tensor* sum = nullptr;
    for (const Tensor& dy : pass.top_diff) {
      if (!dy) continue;
      if (sum) {
        pointwise(context, Add{}, dx, *sum, dy);
        sum = &dx;
      } else {
        sum = &dy;
      }
    }
    if (!sum) {
      zero(context, dx);
    } else if (sum != &dx) {
      pointwise_copy(context, dx, *sum);
    }
  }
};

}  // namespace
REGISTER_LAYER(Split, SplitLayer);
}  // namespace crema

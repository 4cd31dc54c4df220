// Split: gives the same values to several readers. Inserted automatically if a blob has more than
// one reader.
//   y0 = x, y1 = x, ...
// Shapes: all tops as x.
// Parameters: none.
// Gradient: dx = sum of all dy.
#include "kernels/pointwise/add.h"
#include "kernels/pointwise/pointwise.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class SplitLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::join, .elementwise = true, .copies = true};

 private:
  bool independent_along(int, int, const std::vector<Shape>&) const override { return true; }
  Arity tops() const override { return {1, -1}; }
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any, .half_rule = HalfRule::follows, .reads = {false, false}};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    return {std::vector<Shape>(message().top_size(), bottoms[0]), {}};
  }

  void forward(Context& context, const Forward& pass) const override {
    for (const Tensor& y : pass.top) pointwise_copy(context, y, pass.bottom[0]);
  }

  void backward(Context& context, const Backward& pass) const override {
    std::vector<Tensor> parts;
    for (const Tensor& dy : pass.top_diff) {
      if (dy) parts.push_back(dy);
    }
    if (parts.empty()) {
      zero(context, pass.bottom_diff[0]);
    } else {
      add_up(context, parts, pass.bottom_diff[0]);
    }
  }
};

}  // namespace
REGISTER_LAYER(Split, SplitLayer);
}  // namespace crema

// Reorder: converts a blob to another memory order. The planner inserts it between row-major and
// channels-last parts of a net; files do not need it.
//   y = x        dx = dy        bottom and top: any shape, equal
#include "kernels/move/reorder.h"
#include "layers/layer.h"

namespace crema {
namespace {

class ReorderLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::shape, .keeps_channels = true, .copies = true};

  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any, .reads = {false, false}};
  }
  Inference infer(const std::vector<Shape>& bottoms) const override { return {bottoms, {}}; }
  void forward(Context& context, const Forward& pass) const override {
    reorder(context, pass.bottom[0], pass.top[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    if (pass.bottom_diff[0]) reorder(context, pass.top_diff[0], pass.bottom_diff[0]);
  }
};

REGISTER_LAYER(Reorder, ReorderLayer);

}  // namespace
}  // namespace crema

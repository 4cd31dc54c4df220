// Debug (MyCaffe): passes its first bottom on. MyCaffe keeps batches of it and of the labels to
// display them; this layer does not.
//   y = x
// Shapes: x any, labels any; y as x.
// Parameters: none.
// Gradient: dx = dy; none for the labels.
#include "layers/layer.h"

namespace crema {
namespace {

class DebugLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::shape, .elementwise = true, .copies = true, .in_use = InUse::bypassed};

 private:
  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  LayerTraits traits() const override {
    return {.is_view = true,
            .order_rule = OrderRule::any,
            .half_rule = HalfRule::follows,
            .reads = {false, false}};
  }
  Inference infer(const std::vector<Shape>& bottoms) const override { return {{bottoms[0]}, {}}; }

  void forward(Context&, const Forward&) const override {}
  void backward(Context&, const Backward&) const override {}
};

}  // namespace
REGISTER_LAYER(Debug, DebugLayer);
}  // namespace crema

// Silence: consumes blobs that no other layer reads, so that they are not outputs of the net.
// Shapes: any bottoms, no top.
// Parameters: none.
// Gradient: dx = 0.
#include "layers/layer.h"

namespace crema {
namespace {

class SilenceLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::sink};

 private:
  Arity bottoms() const override { return {1, -1}; }
  Arity tops() const override { return {0, 0}; }
  LayerTraits traits() const override { return {.reads = {false, false}}; }
  bool reads_values(int) const override { return false; }
  Inference infer(const std::vector<Shape>&) const override { return {}; }

  void forward(Context&, const Forward&) const override {}
  void backward(Context& context, const Backward& pass) const override {
    for (const Tensor& dx : pass.bottom_diff) {
      if (dx) zero(context, dx);
    }
  }
};

}  // namespace
REGISTER_LAYER(Silence, SilenceLayer);
}  // namespace crema

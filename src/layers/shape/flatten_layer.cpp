// Flatten: merges adjacent axes into one, without moving values.
//   y = x with axes axis to end_axis (default: all after the first) merged
// Shapes: x (N, C, H, W) gives y (N, C*H*W).
// Parameters: none.
// Gradient: dx = dy.
#include "layers/layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

class FlattenLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::shape, .copies = true};

 private:
  LayerTraits traits() const override { return {.is_view = true, .reads = {false, false}}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const int first = x.canonical_axis(params<FlattenParameter>().axis());
    const int last = x.canonical_axis(params<FlattenParameter>().end_axis());
    require(first <= last, "end_axis ", last, " lies before axis ", first);
    Shape y;
    for (int axis = 0; axis < first; ++axis) y.push_back(x[axis]);
    y.push_back(x.count(first, last + 1));
    for (int axis = last + 1; axis < x.axes(); ++axis) y.push_back(x[axis]);
    return {{y}, {}};
  }

  void forward(Context&, const Forward&) const override {}
  void backward(Context&, const Backward&) const override {}
};

}  // namespace
REGISTER_LAYER(Flatten, FlattenLayer);
}  // namespace crema

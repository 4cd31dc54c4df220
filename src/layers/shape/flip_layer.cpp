// Flip: mirrors images, left and right (flip_width, the default), top and bottom (flip_height), or
// both.
//   y[n,c,h,w] = x[n, c, h, W-1-w]
// Shapes: x (N, C, H, W), y as x.
// Parameters: none.
// Gradient: dx is dy mirrored.
#include "layers/shape/strided_copy_layer.h"
#include "proto/params/forks_face.pb.h"

namespace crema {
namespace {

class FlipLayer : public StridedCopyLayer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::shape, .keeps_channels = true, .copies = true};

 private:
  const FlipParameter& p() const { return params<FlipParameter>(); }
  LayerTraits traits() const override {
    LayerTraits traits = StridedCopyLayer::traits();
    traits.order_rule = OrderRule::any;
    return traits;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    require(bottoms[0].axes() == 4, "Flip takes images (N, C, H, W), but the bottom is ",
            bottoms[0].brief());
    return {{bottoms[0]}, {}};
  }

  StridedCopy moves(const Tensor& x, const Tensor& y) const override {
    StridedCopy moves;
    moves.axes = moved_axes(x.shape(), x, y);
    for (const int axis : {2, 3}) {
      if (!(axis == 2 ? p().flip_height() : p().flip_width())) continue;
      MovedAxis& moved = moves.axes[axis];
      moves.from_start += (moved.extent - 1) * moved.from;
      moved.from = -moved.from;
    }
    return moves;
  }
};

}  // namespace
REGISTER_LAYER(Flip, FlipLayer);
}  // namespace crema

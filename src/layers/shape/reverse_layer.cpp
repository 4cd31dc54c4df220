// Reverse (forks): reverses a blob along an axis.
//   y[o,k,i] = x[o, K-1-k, i] with k along `axis`, of K entries
// Shapes: y as x.
// Parameters: none.
// Gradient: dx is dy reversed.
#include "layers/shape/strided_copy_layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

class ReverseLayer : public StridedCopyLayer {
  bool independent_along(int, int axis, const std::vector<Shape>& bottoms) const override {
    return axis != this->axis(bottoms[0]);
  }
  LayerTraits traits() const override {
    LayerTraits traits = StridedCopyLayer::traits();
    traits.order_rule = OrderRule::any;
    return traits;
  }

  int axis(const Shape& x) const { return x.canonical_axis(params<ReverseParameter>().axis()); }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    axis(bottoms[0]);
    return {{bottoms[0]}, {}};
  }

  StridedCopy moves(const Tensor& x, const Tensor& y) const override {
    StridedCopy moves;
    moves.axes = moved_axes(x.shape(), x, y);
    MovedAxis& turned = moves.axes[axis(x.shape())];
    moves.from_start = (turned.extent - 1) * turned.from;
    turned.from = -turned.from;
    return moves;
  }
};

}  // namespace
REGISTER_LAYER(Reverse, ReverseLayer);
}  // namespace crema

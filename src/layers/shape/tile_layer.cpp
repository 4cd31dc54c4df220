// Tile: concatenates copies of the bottom along an axis (default: the channels).
//   y = [x, x, ...]   `tiles` times
// Shapes: y as x, but `tiles` times as long along the axis.
// Parameters: none.
// Gradient: dx = the sum of the slices of dy.
#include "layers/shape/strided_copy_layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

class TileLayer : public StridedCopyLayer {
  bool independent_along(int, int, const std::vector<Shape>&) const override { return true; }
  const TileParameter& p() const { return params<TileParameter>(); }
  LayerTraits traits() const override {
    LayerTraits traits = StridedCopyLayer::traits();
    traits.order_rule = OrderRule::any;
    return traits;
  }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().tiles() > 0, "tiles is ", p().tiles(), ", but must be at least 1: tile_param { ",
            "tiles: 2 }, for example");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    Shape y = bottoms[0];
    y[y.canonical_axis(p().axis())] *= p().tiles();
    return {{y}, {}};
  }

  StridedCopy moves(const Tensor& x, const Tensor& y) const override {
    const int axis = x.shape().canonical_axis(p().axis());
    StridedCopy moves;
    moves.axes = moved_axes(x.shape(), x, y);
    moves.axes.push_back({p().tiles(), moves.axes[axis].to * x.shape()[axis], 0});
    return moves;
  }
};

}  // namespace
REGISTER_LAYER(Tile, TileLayer);
}  // namespace crema

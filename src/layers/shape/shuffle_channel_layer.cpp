// ShuffleChannel: interleaves the channels of several groups, so that each group of the next
// grouped convolution sees channels of all.
//   y[n, j*G + g, ...] = x[n, g*C/G + j, ...]   for g < G = `group`, j < C/G
// Shapes: x two axes or more, y as x; G divides C.
// Parameters: none.
// Gradient: dx is dy with the inverse permutation.
#include "layers/shape/strided_copy_layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

class ShuffleChannelLayer : public StridedCopyLayer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::shape, .along_channels = true, .copies = true};

 private:
  int64_t groups() const { return params<ShuffleChannelParameter>().group(); }
  LayerTraits traits() const override {
    LayerTraits traits = StridedCopyLayer::traits();
    traits.order_rule = OrderRule::any;
    return traits;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() >= 2, "ShuffleChannel needs a bottom with channels (axis 1), this one is ",
            x.brief());
    require(groups() > 0 && x[1] % groups() == 0, "group is ", groups(),
            ", but must divide the number of channels, ", x[1]);
    return {{x}, {}};
  }

  StridedCopy moves(const Tensor& x, const Tensor& y) const override {
    const int64_t each = x.shape()[1] / groups();
    StridedCopy moves;
    moves.axes = moved_axes(x.shape(), x, y);
    const MovedAxis channel = moves.axes[1];
    moves.axes[1] = {each, groups() * channel.to, channel.from};
    moves.axes.push_back({groups(), channel.to, each * channel.from});
    return moves;
  }
};

}  // namespace
REGISTER_LAYER(ShuffleChannel, ShuffleChannelLayer);
}  // namespace crema

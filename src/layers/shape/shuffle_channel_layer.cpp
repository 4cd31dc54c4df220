// ShuffleChannel: deals the channels of several groups out, so that the next grouped convolution
// sees something of each.
//   y[n, j*G + g, ...] = x[n, g*C/G + j, ...]   for g < G = `group`, j < C/G
// Shapes: x two axes or more, y as x; G divides C.
// Parameters: none.
// Gradient: dx is dy dealt back.
#include "layers/shape/rearrange_layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

class ShuffleChannelLayer : public RearrangeLayer {
  int64_t groups() const { return params<ShuffleChannelParameter>().group(); }
  OrderRule order_rule() const override { return OrderRule::any; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() >= 2, "ShuffleChannel needs a bottom with channels (axis 1), this one is ",
            x.brief());
    require(groups() > 0 && x[1] % groups() == 0, "group is ", groups(),
            ", but must divide the number of channels, ", x[1]);
    return {{x}, {}};
  }

  Rearrangement moves(const Tensor& x, const Tensor& y) const override {
    const int64_t each = x.shape()[1] / groups();
    Rearrangement moves;
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

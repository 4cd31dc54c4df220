// GroupNorm: normalizes groups of channels of each image to mean 0 and variance 1.
//   y = (x - mean) / sqrt(variance + eps) * s + b
// Shapes: x (N, C, ...), y the same; one mean and variance per image and group, which has C /
// num_groups channels with all their positions.
// Parameters: s (C, initially 1) and b (C); none with scale_bias: false.
// Gradient: dx = (g - mean(g) - h * mean(g * h)) / sqrt(variance + eps) with g = dy * s and h the
// normalized x, means over a group; ds = sum of dy * h and db = sum of dy over images and
// positions.
#include "layers/norm/row_norm_base.h"
#include "proto/params/modern_norm.pb.h"

namespace crema {
namespace {

class GroupNormLayer : public RowNormBase {
  LayerTraits traits() const override {
    LayerTraits traits = RowNormBase::traits();
    traits.order_rule = OrderRule::any;
    return traits;
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    const GroupNormParameter& p = params<GroupNormParameter>();
    const Shape& x = bottoms[0];
    require(x.axes() >= 2, "GroupNorm needs a bottom with channels (2 axes or more), this one is ",
            x.brief());
    groups_ = p.num_groups();
    require(groups_ > 0 && x[1] % groups_ == 0, "num_groups ", groups_,
            " does not divide the bottom's ", x[1], " channels");
    channels_ = x[1];
    setup_from(p, {channels_});
  }
  RowNormView view(const Shape& x, const Format& format) const override {
    require(x.axes() >= 2 && x[1] == channels_, "the factors were made for ", channels_,
            " channels, but the bottom has shape ", x.brief());
    return RowNormView::of_groups(x, format, groups_);
  }

  int64_t groups_ = 0, channels_ = 0;
};

}  // namespace
REGISTER_LAYER(GroupNorm, GroupNormLayer);
}  // namespace crema

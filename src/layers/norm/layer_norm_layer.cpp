// LayerNorm: normalizes to mean 0 and variance 1 over the axes from `axis` on, for each index of
// the axes before.
//   y = (x - mean) / sqrt(variance + eps) * s + b
// Shapes: x any, y the same; one mean and variance per row, which is the elements of all axes from
// `axis` on.
// Parameters: s (initially 1) and b, of the shape of a row; none with scale_bias: false.
// Gradient: dx = (g - mean(g) - h * mean(g * h)) / sqrt(variance + eps) with g = dy * s and h the
// normalized x, means over a row; ds = sum of dy * h and db = sum of dy over all rows.
#include "layers/norm/row_norm_base.h"
#include "proto/params/modern_norm.pb.h"

namespace crema {
namespace {

class LayerNormLayer : public RowNormBase {
  bool independent_along(int, int axis, const std::vector<Shape>&) const override {
    return axis < axis_;
  }
  void setup(Context&, const std::vector<Shape>& bottoms) override {
    const LayerNormParameter& p = params<LayerNormParameter>();
    const Shape& x = bottoms[0];
    axis_ = x.canonical_axis(p.axis());
    row_ = Shape(std::vector<int64_t>(x.dims().begin() + axis_, x.dims().end()));
    require(row_.count() > 0, "there is nothing to normalize from axis ", axis_,
            " on: the bottom has shape ", x.brief());
    setup_from(p, row_);
  }
  RowNormView view(const Shape& x, const Format&) const override {
    require(x.axes() - axis_ == row_.axes() && x.count(axis_) == row_.count(),
            "the factors were made for rows of shape ", row_.brief(), ", but the bottom has shape ",
            x.brief());
    return RowNormView::of_rows(x.count(0, axis_), row_.count());
  }

  int axis_ = 0;
  Shape row_;
};

}  // namespace
REGISTER_LAYER(LayerNorm, LayerNormLayer);
}  // namespace crema

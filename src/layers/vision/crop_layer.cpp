// Crop: cuts the first bottom to the size of the second from `axis` on.
//   y[..., i, j] = x[..., offset0 + i, offset1 + j]
// Shapes: y as x, with the second bottom's extents from `axis` (default 2) on; one offset for all
// these axes or one per axis.
// Parameters: none.
// Gradient: dx is dy at its position and 0 around it; none for the second bottom.
#include "layers/shape/strided_copy_layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

class CropLayer : public StridedCopyLayer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::resize, .keeps_channels = true, .copies = true};

 private:
  const CropParameter& p() const { return params<CropParameter>(); }
  Arity bottoms() const override { return {2, 2}; }
  LayerTraits traits() const override {
    LayerTraits traits = StridedCopyLayer::traits();
    traits.order_rule = OrderRule::any;
    return traits;
  }
  bool differentiable(int bottom) const override { return bottom == 0; }
  bool reads_values(int bottom) const override { return bottom == 0; }

  int64_t offset(int axis, int first) const {
    if (axis < first || p().offset_size() == 0) return 0;
    return p().offset(p().offset_size() == 1 ? 0 : axis - first);
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &x = bottoms[0], &size = bottoms[1];
    const int first = x.canonical_axis(p().axis());
    require(size.axes() == x.axes(), "both bottoms must have as many axes, but they are ",
            x.brief(), " and ", size.brief());
    require(p().offset_size() <= 1 || p().offset_size() == x.axes() - first, "there are ",
            p().offset_size(), " offset for ", x.axes() - first, " axes (from axis ", first,
            " on): give one for all or one for each");
    Shape y = x;
    for (int axis = first; axis < x.axes(); ++axis) {
      y[axis] = size[axis];
      require(offset(axis, first) + size[axis] <= x[axis], "on axis ", axis, " offset ",
              offset(axis, first), " and the second bottom's extent ", size[axis],
              " reach beyond the first bottom's ", x[axis], " (", x.brief(), " cropped to ",
              size.brief(), ")");
    }
    return {{y}, {}};
  }

  StridedCopy moves(const Tensor& x, const Tensor& y) const override {
    const int first = x.shape().canonical_axis(p().axis());
    StridedCopy moves;
    moves.axes = moved_axes(y.shape(), x, y);
    for (int axis = first; axis < x.shape().axes(); ++axis)
      moves.from_start += offset(axis, first) * moves.axes[axis].from;
    return moves;
  }
};

}  // namespace
REGISTER_LAYER(Crop, CropLayer);
}  // namespace crema

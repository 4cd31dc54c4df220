// Reshape: gives the same values another shape, without moving them.
//   y = x with num_axes axes from `axis` on replaced by `shape`, where 0 keeps the bottom's extent
//   and one -1 takes the rest
// Shapes: x (N, 8) with shape { dim: 0 dim: -1 dim: 2 } gives y (N, 4, 2).
// Parameters: none.
// Gradient: dx = dy.
#include "layers/layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

class ReshapeLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::shape, .copies = true};

 private:
  LayerTraits traits() const override { return {.is_view = true, .reads = {false, false}}; }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const ReshapeParameter& p = params<ReshapeParameter>();
    // Here -1 means after the last axis, not before it: new axes can be appended.
    const int first = p.axis() >= 0 ? p.axis() : x.axes() + p.axis() + 1;
    require(first >= 0 && first <= x.axes(), "axis ", p.axis(), " is out of range for a bottom of ",
            x.axes(), " axes (", x.brief(), ")");
    require(p.num_axes() >= -1 && p.num_axes() <= x.axes() - first, "num_axes ", p.num_axes(),
            " from axis ", first, " on reaches beyond the bottom's ", x.axes(), " axes (",
            x.brief(), ")");
    const int end = p.num_axes() == -1 ? x.axes() : first + p.num_axes();

    Shape y;
    int rest = -1;
    for (int axis = 0; axis < first; ++axis) y.push_back(x[axis]);
    for (int i = 0; i < p.shape().dim_size(); ++i) {
      const int64_t extent = p.shape().dim(i);
      if (extent == 0) {
        require(first + i < x.axes(), "dim 0 at position ", i, " keeps axis ", first + i,
                " of the bottom, which has only ", x.axes(), " axes (", x.brief(), ")");
        y.push_back(x[first + i]);
      } else if (extent == -1) {
        require(rest < 0, "only one dim may be -1");
        rest = y.axes();
        y.push_back(1);
      } else {
        require(extent > 0, "dim ", extent,
                " is not an extent: positive numbers, 0 (keep) and -1 (what is left) are");
        y.push_back(extent);
      }
    }
    for (int axis = end; axis < x.axes(); ++axis) y.push_back(x[axis]);
    if (rest >= 0 && y.count() > 0) {
      require(x.count() % y.count() == 0, "dim -1 has no solution: the bottom (", x.brief(),
              ") has ", x.count(), " values, the other extents take ", y.count());
      y[rest] = x.count() / y.count();
    }
    require(y.count() == x.count(), "the bottom (", x.brief(), ") has ", x.count(),
            " values, the new shape (", y.brief(), ") ", y.count());
    return {{y}, {}};
  }

  void forward(Context&, const Forward&) const override {}
  void backward(Context&, const Backward&) const override {}
};

}  // namespace
REGISTER_LAYER(Reshape, ReshapeLayer);
}  // namespace crema

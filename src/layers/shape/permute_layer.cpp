// Permute: reorders the axes; Transpose is the same under another name.
//   y[i_order[0], i_order[1], ...] = x[i0, i1, ...]
// `order` (`dim` of Transpose) names the bottom's axis that each axis of the top takes; axes that
// it omits follow in their old order. Two `dim` for more than two axes swap those axes.
// Shapes: x (N, C, H, W) with order 0, 2, 3, 1 gives y (N, H, W, C).
// Parameters: none.
// Gradient: dx is dy with the inverse order.
#include <algorithm>
#include <numeric>

#include "layers/shape/strided_copy_layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

class PermuteLayer : public StridedCopyLayer {
  bool independent_along(int, int, const std::vector<Shape>&) const override { return true; }

 protected:
  // For each of the top's axes the bottom's axis, as far as the file lists them.
  virtual std::vector<int> given(const Shape& x) const {
    const auto& order = params<PermuteParameter>().order();
    std::vector<int> axes(order.begin(), order.end());
    for (const int axis : axes) {
      require(axis >= 0 && axis < x.axes(), "order names axis ", axis, ", but the bottom ",
              x.brief(), " has axes 0 to ", x.axes() - 1);
    }
    return axes;
  }

  std::vector<int> order(const Shape& x) const {
    std::vector<int> axes = given(x);
    for (size_t i = 0; i < axes.size(); ++i) {
      require(std::find(axes.begin(), axes.begin() + i, axes[i]) == axes.begin() + i, "axis ",
              axes[i], " is named twice in the new order of the axes");
    }
    for (int axis = 0; axis < x.axes(); ++axis) {
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
    }
    return axes;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    Shape y;
    for (const int axis : order(bottoms[0])) y.push_back(bottoms[0][axis]);
    return {{y}, {}};
  }

  StridedCopy moves(const Tensor& x, const Tensor& y) const override {
    const std::vector<int64_t> from = steps_of(x), to = steps_of(y);
    StridedCopy moves;
    int i = 0;
    for (const int axis : order(x.shape())) {
      moves.axes.push_back({x.shape()[axis], to[i], from[axis]});
      ++i;
    }
    return moves;
  }
};

class TransposeLayer : public PermuteLayer {
  std::vector<int> given(const Shape& x) const override {
    std::vector<int> dims;
    for (const int dim : params<TransposeParameter>().dim()) dims.push_back(x.canonical_axis(dim));
    if (dims.size() != 2 || x.axes() == 2) return dims;
    std::vector<int> axes(x.axes());
    std::iota(axes.begin(), axes.end(), 0);
    std::swap(axes[dims[0]], axes[dims[1]]);
    return axes;
  }
};

}  // namespace
REGISTER_LAYER(Permute, PermuteLayer);
REGISTER_LAYER(Transpose, TransposeLayer);
}  // namespace crema

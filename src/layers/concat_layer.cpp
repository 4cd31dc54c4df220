// Concat: bottoms one after another along an axis (the channels when nothing is said).
//   y = [x0, x1, ...]
// Shapes: all bottoms alike but for the axis; y has the sum of their extents there.
// Parameters: none.
// Gradient: each dx is its part of dy.
#include "kernels/concat.h"
#include "layers/layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

class ConcatLayer : public Layer {
  Arity bottoms() const override { return {1, -1}; }
  OrderRule order_rule() const override { return OrderRule::any; }
  HalfRule half_rule() const override { return HalfRule::follows; }
  BackwardReads reads() const override { return {false, false}; }

  int axis_of(const Shape& bottom) const {
    const ConcatParameter& p = params<ConcatParameter>();
    require(!p.has_axis() || !p.has_concat_dim(),
            "axis and concat_dim (its old name) are both given: keep axis");
    return bottom.canonical_axis(p.has_concat_dim() ? static_cast<int>(p.concat_dim()) : p.axis());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    Shape top = bottoms[0];
    const int axis = axis_of(top);
    for (size_t i = 1; i < bottoms.size(); ++i) {
      Shape expected = bottoms[0];
      if (bottoms[i].axes() == expected.axes()) expected[axis] = bottoms[i][axis];
      require(bottoms[i] == expected, "bottom ", i, " is ", bottoms[i].brief(),
              ", but only on axis ", axis, " may it differ from bottom 0, which is ",
              bottoms[0].brief());
      top[axis] += bottoms[i][axis];
    }
    return {{top}, {}};
  }

  void forward(Context& context, const Forward& pass) override {
    const int axis = axis_of(pass.bottom[0].shape());
    int64_t begin = 0;
    for (const Tensor& x : pass.bottom) {
      copy_part(context, axis, x.shape()[axis], x, 0, pass.top[0], begin);
      begin += x.shape()[axis];
    }
  }

  Prepared prepare(Context&, const Preparation& preparation) override {
    shapes_ = preparation.bottoms;
    return {};
  }

  void backward(Context& context, const Backward& pass) override {
    const int axis = axis_of(shapes_[0]);
    int64_t begin = 0;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const int64_t extent = shapes_[i][axis];
      if (const Tensor& dx = pass.bottom_diff[i])
        copy_part(context, axis, extent, pass.top_diff[0], begin, dx, 0);
      begin += extent;
    }
  }

  std::vector<Shape> shapes_;  // of the bottoms
};

}  // namespace
REGISTER_LAYER(Concat, ConcatLayer);
}  // namespace crema

// Slice: cuts a bottom along an axis (the channels when nothing is said), at the given points or
// into equal parts.
//   [y0, y1, ...] = x
// Shapes: tops as x but for the axis, where their extents add up to that of x. Parameters: none.
// Gradient: dx = [dy0, dy1, ...]; zeros for a part whose top has no gradient.
#include "kernels/concat.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class SliceLayer : public Layer {
  Arity tops() const override { return {1, -1}; }
  OrderRule order_rule() const override { return OrderRule::any; }
  HalfRule half_rule() const override { return HalfRule::follows; }
  BackwardReads reads() const override { return {false, false}; }

  int axis_of(const Shape& bottom) const {
    const SliceParameter& p = params<SliceParameter>();
    require(!p.has_axis() || !p.has_slice_dim(),
            "axis and slice_dim (its old name) are both given: keep axis");
    return bottom.canonical_axis(p.has_slice_dim() ? static_cast<int>(p.slice_dim()) : p.axis());
  }

  // Where each top begins; the last entry is the bottom's extent.
  std::vector<int64_t> cuts(int64_t extent) const {
    const auto& points = params<SliceParameter>().slice_point();
    const int tops = message().top_size();
    std::vector<int64_t> cuts = {0};
    if (points.empty()) {
      require(extent % tops == 0, "the bottom's extent ", extent, " cannot be cut into ", tops,
              " equal parts: give slice_point");
      for (int i = 1; i <= tops; ++i) cuts.push_back(extent / tops * i);
      return cuts;
    }
    require(points.size() == tops - 1, tops, " tops need ", tops - 1,
            " slice_point, but there are ", points.size());
    for (const int64_t point : points) cuts.push_back(point);
    cuts.push_back(extent);
    for (size_t i = 1; i < cuts.size(); ++i) {
      require(cuts[i] > cuts[i - 1], "slice_point must grow and stay below the bottom's extent ",
              extent, ", but ", cuts[i], " follows ", cuts[i - 1]);
    }
    return cuts;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const int axis = axis_of(bottoms[0]);
    const std::vector<int64_t> at = cuts(bottoms[0][axis]);
    Inference inference;
    for (size_t i = 0; i + 1 < at.size(); ++i) {
      Shape top = bottoms[0];
      top[axis] = at[i + 1] - at[i];
      inference.tops.push_back(top);
    }
    return inference;
  }

  void forward(Context& context, const Forward& pass) override {
    const Tensor& x = pass.bottom[0];
    const int axis = axis_of(x.shape());
    const std::vector<int64_t> at = cuts(x.shape()[axis]);
    for (size_t i = 0; i < pass.top.size(); ++i) {
      copy_part(context, axis, at[i + 1] - at[i], x, at[i], pass.top[i], 0);
    }
  }

  void backward(Context& context, const Backward& pass) override {
    const Tensor& dx = pass.bottom_diff[0];
    const int axis = axis_of(dx.shape());
    const std::vector<int64_t> at = cuts(dx.shape()[axis]);
    for (size_t i = 0; i < pass.top_diff.size(); ++i) {
      if (pass.top_diff[i]) {
        copy_part(context, axis, at[i + 1] - at[i], pass.top_diff[i], 0, dx, at[i]);
      } else {
        zero_part(context, axis, at[i + 1] - at[i], dx, at[i]);
      }
    }
  }
};

}  // namespace
REGISTER_LAYER(Slice, SliceLayer);
}  // namespace crema

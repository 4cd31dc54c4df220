// Slice: splits a bottom along an axis (default: the channels), at the given points or into equal
// parts.
//   [y0, y1, ...] = x
// SliceHalf splits it into two halves; the second is longer by one if the extent is odd.
// Shapes: tops as x except along the axis, where their extents add up to that of x.
// Parameters: none.
// Gradient: dx = [dy0, dy1, ...]; zeros for a part whose top has no gradient.
#include "kernels/move/concat.h"
#include "layers/layer.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

class SliceLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::join, .along_channels = true, .copies = true};

 private:
  Arity tops() const override { return {1, -1}; }
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any, .half_rule = HalfRule::follows, .reads = {false, false}};
  }
  bool independent_along(int, int axis, const std::vector<Shape>& bottoms) const override {
    return axis != axis_of(bottoms[0]);
  }

 protected:
  int axis_of(const Shape& bottom) const {
    const SliceParameter& p = params<SliceParameter>();
    require(!p.has_axis() || !p.has_slice_dim(),
            "axis and slice_dim (its old name) are both given: keep axis");
    return bottom.canonical_axis(p.has_slice_dim() ? static_cast<int>(p.slice_dim()) : p.axis());
  }

  // Extent of each top along the axis.
  virtual std::vector<int64_t> extents(int64_t whole) const {
    const auto& points = params<SliceParameter>().slice_point();
    const int tops = message().top_size();
    if (points.empty()) {
      require(whole % tops == 0, "the bottom's extent ", whole, " cannot be cut into ", tops,
              " equal parts: give slice_point");
      return std::vector<int64_t>(tops, whole / tops);
    }
    require(points.size() == tops - 1, tops, " tops need ", tops - 1,
            " slice_point, but there are ", points.size());
    std::vector<int64_t> ends(points.begin(), points.end()), extents;
    ends.push_back(whole);
    int64_t begin = 0;
    for (const int64_t end : ends) {
      require(end > begin, "slice_point must grow and stay below the bottom's extent ", whole,
              ", but ", end, " follows ", begin);
      extents.push_back(end - begin);
      begin = end;
    }
    return extents;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const int axis = axis_of(bottoms[0]);
    Inference inference;
    for (const int64_t extent : extents(bottoms[0][axis])) {
      Shape top = bottoms[0];
      top[axis] = extent;
      inference.tops.push_back(top);
    }
    return inference;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    const int axis = axis_of(x.shape());
    split_pieces(context, axis, extents(x.shape()[axis]), {x}, pass.top);
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor& dx = pass.bottom_diff[0];
    const int axis = axis_of(dx.shape());
    concat_pieces(context, axis, extents(dx.shape()[axis]), pass.top_diff, dx);
  }
};

class SliceHalfLayer : public SliceLayer {
  Arity tops() const override { return {2, 2}; }
  std::vector<int64_t> extents(int64_t whole) const override {
    require(whole >= 2, "an extent of ", whole, " cannot be cut into two halves");
    return {whole / 2, whole - whole / 2};
  }
};

}  // namespace
REGISTER_LAYER(Slice, SliceLayer);
REGISTER_LAYER(SliceHalf, SliceHalfLayer);
}  // namespace crema

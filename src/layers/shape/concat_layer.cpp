// Concat: concatenates bottoms along an axis (default: the channels).
//   y = [x0, x1, ...]
// Shapes: all bottoms equal except along the axis, where y has the sum of their extents.
// Parameters: none.
// Gradient: each dx is its part of dy.
#include "kernels/move/concat.h"
#include "layers/layer.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

class ConcatLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::join, .along_channels = true, .copies = true};

 private:
  bool independent_along(int, int, const std::vector<Shape>&) const override { return true; }
  Arity bottoms() const override { return {1, -1}; }
  LayerTraits traits() const override {
    return {.concatenates = true,
            .order_rule = OrderRule::any,
            .half_rule = HalfRule::follows,
            .reads = {false, false},
            .recomputes = true};
  }

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

  void forward(Context& context, const Forward& pass) const override {
    concat_pieces(context, axis_of(pass.bottom[0].shape()), state_of<State>(pass).extents,
                  pass.bottom, pass.top[0]);
  }

  void recompute(Context& context, const Forward& pass) const override { forward(context, pass); }

  struct State : LayerState {
    std::vector<int64_t> extents;  // of the bottoms along the axis
  };

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    Prepared prepared;
    State& state = prepared.make_state<State>();
    for (const Shape& shape : preparation.bottoms) state.extents.push_back(shape[axis_of(shape)]);
    prepared.top_edge.gradient_parts = max_fused_wholes(context, preparation.tops[0].count());
    return prepared;
  }

  void backward(Context& context, const Backward& pass) const override {
    std::vector<Tensor> parts = {pass.top_diff[0]};
    const std::vector<Tensor>& more = pass.top_edge.gradient_parts;
    parts.insert(parts.end(), more.begin(), more.end());
    split_pieces(context, axis_of(parts[0].shape()), state_of<State>(pass).extents, parts,
                 pass.bottom_diff);
  }
};

}  // namespace
REGISTER_LAYER(Concat, ConcatLayer);
}  // namespace crema

// MergeCrop: concatenates or adds the first bottom and the centre crop of the second, as U-nets
// without padding do with their two paths.
//   STACK  y = [a, crop(b)] along the channels
//   ADD    y = a + crop(b)
// where crop(b)[n, c, i, ...] = b[n, c, i + (B_i - A_i) / 2, ...] in the spatial extents of a.
// `forward` with 0 for a bottom replaces it by zeros.
// Shapes: a (N, A, spatial...), b (N, B, at least as much...); y (N, A + B, spatial of a), with ADD
// as a.
// Parameters: none.
// Gradient: each bottom gets its part of dy if `backward` has 1 for it; by default only a.
#include "kernels/pointwise/add.h"
#include "layers/shape/strided_copy_layer.h"
#include "proto/params/shape.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

class MergeCropLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::join};

 private:
  const MergeCropParameter& p() const { return params<MergeCropParameter>(); }
  bool stacks() const { return p().operation() == MergeCropParameter::STACK; }
  bool flows(int bottom) const { return p().forward_size() <= bottom || p().forward(bottom); }
  Arity bottoms() const override { return {2, 2}; }
  bool differentiable(int bottom) const override {
    return p().backward_size() > bottom ? p().backward(bottom) : bottom == 0;
  }
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any, .reads = {false, false}};
  }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().forward_size() <= 2 && p().backward_size() <= 2,
            "forward and backward have one number for each of the two bottoms, but there are ",
            p().forward_size(), " and ", p().backward_size());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape &a = bottoms[0], &b = bottoms[1];
    bool fits = a.axes() >= 2 && a.axes() == b.axes() && a[0] == b[0];
    for (int axis = 2; fits && axis < a.axes(); ++axis) fits = b[axis] >= a[axis];
    require(fits, "the second bottom must have the batch of the first and at least its spatial ",
            "extents, but they are ", a.brief(), " and ", b.brief());
    require(stacks() || a[1] == b[1], "ADD needs as many channels in both bottoms, but they are ",
            a.brief(), " and ", b.brief());
    Shape y = a;
    if (stacks()) y[1] += b[1];
    return {{y}, {}};
  }

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    if (!stacks()) prepared.workspace = preparation.tops[0].count() * size_of(preparation.dtype);
    return prepared;
  }

  // The copy of bottom i to its part of y.
  StridedCopy moves(int i, const Tensor& x, const Tensor& y) const {
    Shape extents = y.shape();
    extents[1] = x.shape()[1];
    StridedCopy moves;
    moves.axes = moved_axes(extents, x, y);
    for (int axis = 2; axis < extents.axes(); ++axis)
      moves.from_start += (x.shape()[axis] - extents[axis]) / 2 * moves.axes[axis].from;
    if (i == 1 && stacks()) {
      const int64_t first_channels = y.shape()[1] - x.shape()[1];
      moves.to_start = first_channels * moves.axes[1].to;
    }
    return moves;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& y = pass.top[0];
    if (!flows(0) || (!flows(1) && stacks())) zero(context, y);
    if (flows(0)) strided_copy(context, moves(0, pass.bottom[0], y), pass.bottom[0], y);
    if (!flows(1)) return;
    const Tensor goal = stacks() ? y : part_of(pass.workspace, 0, y.shape(), y.dtype(), y.format());
    strided_copy(context, moves(1, pass.bottom[1], goal), pass.bottom[1], goal);
    if (!stacks()) add_to(context, goal, y);
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor& dy = pass.top_diff[0];
    for (int i = 0; i < 2; ++i) {
      const Tensor& dx = pass.bottom_diff[i];
      if (!dx) continue;
      const StridedCopy back = moves(i, dx, dy).reversed();
      if (back.written_count() < dx.count()) zero(context, dx);
      strided_copy(context, back, dy, dx);
    }
  }
};

}  // namespace
REGISTER_LAYER(MergeCrop, MergeCropLayer);
}  // namespace crema

// Base of layers that only move values: top 0 has values of bottom 0 at other positions, each as
// often as the layer says; the gradient is moved back and summed.
#pragma once

#include "kernels/move/strided_copy.h"
#include "layers/layer.h"

namespace crema {

class StridedCopyLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::shape, .copies = true};

  LayerTraits traits() const override {
    return {.half_rule = HalfRule::follows, .reads = {false, false}};
  }
  void forward(Context& context, const Forward& pass) const override {
    strided_copy(context, moves(pass.bottom[0], pass.top[0]), pass.bottom[0], pass.top[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    const Tensor &dy = pass.top_diff[0], &dx = pass.bottom_diff[0];
    const StridedCopy back = moves(dx, dy).reversed();
    if (back.written_count() < dx.count()) zero(context, dx);
    strided_copy(context, back, dy, dx);
  }

 protected:
  // The copy from x to y; only their shapes and formats matter.
  virtual StridedCopy moves(const Tensor& x, const Tensor& y) const = 0;
};

// The strides of two tensors along their axes, over `extents`.
inline std::vector<MovedAxis> moved_axes(const Shape& extents, const Tensor& x, const Tensor& y) {
  const std::vector<int64_t> from = steps_of(x), to = steps_of(y);
  std::vector<MovedAxis> axes;
  for (int axis = 0; axis < extents.axes(); ++axis)
    axes.push_back({extents[axis], to[axis], from[axis]});
  return axes;
}

}  // namespace crema

// Base of Scale and Bias: one value, learned or from the second bottom, for each index of some axes
// of x, broadcast over the others.
#pragma once

#include "kernels/norm/scale.h"
#include "layers/layer.h"

namespace crema {

struct BroadcastAxes {
  int first = 0, count = 0;  // axes [first, first + count) of x have their own values
  Shape shape;               // of the values
  OrderRule order_rule = OrderRule::row_major;

  // axis and num_axes as in the files; with a second bottom its axes replace num_axes.
  static BroadcastAxes of(const std::vector<Shape>& bottoms, int axis, int num_axes) {
    const Shape& x = bottoms[0];
    BroadcastAxes b;
    if (bottoms.size() > 1) {
      b.shape = bottoms[1];
      b.count = b.shape.axes();
      b.first = b.count == 0 ? 0 : x.canonical_axis(axis);
    } else {
      require(num_axes >= -1, "num_axes is ", num_axes,
              ", but must be -1 (all axes from `axis` on) or a number of axes");
      b.first = num_axes == 0 ? 0 : x.canonical_axis(axis);
      b.count = num_axes == -1 ? x.axes() - b.first : num_axes;
    }
    require(b.count <= x.axes() - b.first, "the values reach over ", b.count, " axes from axis ",
            b.first, " on, but the bottom ", x.brief(), " has only ", x.axes(), " axes");
    for (int i = 0; i < b.count; ++i) {
      if (bottoms.size() == 1) {
        b.shape.push_back(x[b.first + i]);
      } else {
        require(b.shape[i] == x[b.first + i], "the second bottom is ", b.shape.brief(),
                ", but the axes of the first one, ", x.brief(),
                ", that it is laid along begin at axis ", b.first,
                " and must have the same extents");
      }
    }
    // The cases that ChannelView supports in channels-last: a scalar, N, C, (N, C), and a second
    // bottom like the first.
    const bool like_x = bottoms.size() > 1 && b.count == x.axes();
    if (b.count == 0 || (b.first == 1 && b.count == 1) || (b.first == 0 && b.count <= 2) || like_x)
      b.order_rule = OrderRule::any;
    return b;
  }

  ChannelView view(const Shape& x, const Format& format) const {
    const int end = first + count;
    if (count == 0) return {1, 1, 1, x.count()};
    if (same_layout(format, Format::row_major(), x) || (first == 0 && count != 2) ||
        count == x.axes()) {
      return {1, x.count(0, first), x.count(first, end), x.count(end)};
    }
    if (count == 1) return {1, x[0] * x.count(2), x[1], 1};
    return {x[0], x.count(2), x[1], 1};
  }
};

class BroadcastLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::affine,
                                       .along_channels = true,
                                       .keeps_channels = true,
                                       .keeps_zero = true,
                                       .learned = 1};

  Arity bottoms() const override { return {1, 2}; }
  LayerTraits traits() const override {
    return {.in_place = true, .order_rule = axes_.order_rule, .half_rule = HalfRule::follows};
  }
  Inference infer(const std::vector<Shape>& bottoms) const override { return {{bottoms[0]}, {}}; }

  // Learned values would be a sample's own.
  bool independent_along(int bottom, int axis, const std::vector<Shape>&) const override {
    return bottom > 0 || !learned_ || axis < axes_.first || axis >= axes_.first + axes_.count;
  }

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    Prepared prepared;
    prepared.workspace = scale_workspace(
        context, axes_.view(preparation.bottoms[0], {preparation.bottom_orders[0], nullptr}));
    return prepared;
  }

 protected:
  // One learned value for each index of axis 1.
  bool maps_channels() const { return learned_ && axes_.first == 1 && axes_.count == 1; }

  // The first step of setup.
  void setup_values(const std::vector<Shape>& bottoms, int axis, int num_axes,
                    const FillerParameter& filler) {
    axes_ = BroadcastAxes::of(bottoms, axis, num_axes);
    learned_ = bottoms.size() == 1;
    if (learned_) add_parameter(axes_.shape, filler);
  }

  ChannelView view(const Tensor& x) const { return axes_.view(x.shape(), x.format()); }
  // Selects from two lists of tensors the one with the values or their gradient.
  const Tensor& values(const std::vector<Tensor>& parameters,
                       const std::vector<Tensor>& bottoms) const {
    return learned_ ? parameters[0] : bottoms[1];
  }

  BroadcastAxes axes_;
  bool learned_ = true;
};

}  // namespace crema

// What layers that treat each value by itself have in common: one bottom, one top of its shape, any
// order, in place.
#pragma once

#include "layers/layer.h"

namespace crema {

class PointwiseLayer : public Layer {
 public:
  bool in_place() const override { return true; }
  OrderRule order_rule() const override { return OrderRule::any; }
  HalfRule half_rule() const override { return HalfRule::follows; }
  Inference infer(const std::vector<Shape>& bottoms) const override { return {{bottoms[0]}, {}}; }
};

}  // namespace crema

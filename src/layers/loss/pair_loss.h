// Base of losses of the differences of two bottoms. For .cu files only, like device/parallel.h. A
// PairLoss is a TermLoss (loss_layer.h) whose terms have the gradient of bottom 0, da; backward
// computes db = -da together with it. euclidean_loss_layer.cu is an example.
#pragma once

#include "layers/loss/loss_layer.h"

namespace crema {

class PairLossLayer : public LossLayer {
 public:
  static constexpr bool kPair = true;
  bool differentiable(int bottom) const override { return bottom < 2; }
};

template <typename Self>
using PairLoss = TermLoss<Self, PairLossLayer>;

// The first two bottoms, or only one; `axes`: the minimum. Returns the first.
inline const Shape& require_like_batches(const std::vector<Shape>& bottoms, int axes = 1) {
  const Shape &a = bottoms[0], &b = bottoms[bottoms.size() > 1 ? 1 : 0];
  require(a.axes() >= axes && b.axes() >= axes && a[0] == b[0] && a.count() == b.count(),
          "both bottoms must have the same batch and as many values, but they are ", a.brief(),
          " and ", b.brief());
  return a;
}

}  // namespace crema

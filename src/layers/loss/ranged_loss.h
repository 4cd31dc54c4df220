// Base of losses whose bottom 1 or 2 has targets from a range (kernels/core/targets.h). For .cu
// files only, like device/parallel.h. A RangedLoss is a TermLoss; loss_layer.h describes its file.
// The layer has
//   shapes(bottoms)   instead of infer(), which adds the record of a bad target
//   range()           the valid targets
// and its terms have ranged<T>(in), of which loss() calls note(i).
#pragma once

#include "kernels/labels/targets.h"
#include "layers/loss/loss_layer.h"

namespace crema {

// Targets with the record of those out of range; a no-op on the CPU.
template <typename T>
struct RangedTargets {
  const T* targets;
  TargetBounds<T> bounds;
  LabelNote record;
  CREMA_HD T at(int64_t i) const { return targets[i]; }
  CREMA_HD bool counts(int64_t i) const { return !bounds.is_ignored(targets[i]); }
  CREMA_HD void note(int64_t i) const {
    if (!bounds.has(targets[i])) record.write(i, targets[i]);
  }
};

class RangedLossLayer : public LossLayer {
 public:
  virtual Inference shapes(const std::vector<Shape>& bottoms) const = 0;
  virtual TargetRange range() const = 0;
  virtual size_t targets() const { return 1; }  // the bottom that has them

  // The record is the last of the saved tensors.
  Inference infer(const std::vector<Shape>& bottoms) const final {
    Inference made = shapes(bottoms);
    made.saved.push_back({{LabelNote::kCount}, DType::i32, true});
    return made;
  }
  void check_values(const Forward& pass) const override {
    const Tensor& targets = pass.bottom[this->targets()];
    check_targets(targets, range(), each(targets.shape()));
  }
  void check(Context& context, const Forward& pass) const override {
    check_target_note(context, pass.saved.back(), range());
  }

  template <typename T>
  RangedTargets<T> ranged(const LossInput& in) const {
    return {in.at<T>(targets()),
            range().template bounds<T>(),
            {in.saved.back().data<int32_t>(), 0, each(in.bottom[targets()].shape()), in.pass,
             in.live_pass}};
  }

 private:
  static int64_t each(const Shape& targets) {
    return targets.axes() > 0 && targets[0] > 0 ? targets.count() / targets[0] : 1;
  }
};

template <typename Self>
using RangedLoss = TermLoss<Self, RangedLossLayer>;

}  // namespace crema

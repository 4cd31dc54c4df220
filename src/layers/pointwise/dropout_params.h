// The settings in dropout_param.
#pragma once

#include "base/error.h"
#include "kernels/pointwise/dropout.h"
#include "proto/params/activation.pb.h"

namespace crema {

struct DropoutParams {
  bool drops = false;
  float factor = 1;  // scale of the values kept

  DropoutParams() = default;
  DropoutParams(const DropoutParameter& p, bool training) : ratio_(p.dropout_ratio()) {
    require(ratio_ >= 0 && ratio_ < 1, "dropout_ratio is ", ratio_,
            ", but a probability from 0 to below 1 is needed");
    drops = (training || p.sample_weights_test()) && ratio_ > 0;
    const float kept = 1 - ratio_;
    if (p.scale_train()) {
      factor = drops ? 1 / kept : 1;
    } else {
      factor = training ? 1 : kept;
    }
  }

  bool changes() const { return drops || factor != 1; }
  // samples: of the values that are dropped.
  DropoutMask mask(const PassRandom& random, const BatchShare& samples) const {
    return {random, drops ? static_cast<uint32_t>(ratio_ * 4294967296.0) : 0, factor, samples};
  }

 private:
  float ratio_ = 0;
};

}  // namespace crema

// The divisor of a loss, as loss_param gives it.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "layers/layer_passes.h"
#include "proto/params/loss.pb.h"

namespace crema {

struct LossNormalizer {
  bool by_valid = false;  // divide by the number of examples not ignored, counted in each pass (1
                          // if there are none)
  double constant = 1;    // otherwise the divisor
  bool per_batch = true;  // the constant is proportional to the batch

  LossParts parts() const {
    if (by_valid) return LossParts::all(PartsRule::counted);
    return LossParts::all(per_batch ? PartsRule::mean : PartsRule::sum);
  }
};

// Why a softmax along axis 0 has no parts.
inline constexpr const char* kSoftmaxOverBatch =
    "its softmax is along axis 0, over the samples of the batch, and each rank has only some of "
    "them; train with -batch_mode per_gpu";

// `images`: batch size; `examples`: all examples of the sum. `when_absent`: the mode if the file
// gives none. `counting`: VALID needs counting even without ignore_label.
inline LossNormalizer loss_normalizer(const LossParameter& p,
                                      LossParameter::NormalizationMode when_absent, int64_t images,
                                      int64_t examples, bool counting = false) {
  LossParameter::NormalizationMode mode = when_absent;
  if (p.has_normalization()) {
    mode = p.normalization();
  } else if (p.has_normalize()) {
    mode = p.normalize() ? LossParameter::VALID : LossParameter::BATCH_SIZE;
  }
  const auto at_least_1 = [](int64_t n) { return static_cast<double>(std::max<int64_t>(n, 1)); };
  switch (mode) {
    case LossParameter::FULL:
      return {false, at_least_1(examples)};
    case LossParameter::VALID:
      return {counting || p.has_ignore_label(), at_least_1(examples)};
    case LossParameter::BATCH_SIZE:
      return {false, at_least_1(images)};
    case LossParameter::PRE_FIXED:
      require(p.pre_fixed_normalizer() > 0, "pre_fixed_normalizer is ", p.pre_fixed_normalizer(),
              ", but must be positive");
      return {false, p.pre_fixed_normalizer(), false};
    default:
      return {false, 1, false};
  }
}

}  // namespace crema

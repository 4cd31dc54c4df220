// What the fields of a BatchNorm mean together: which statistics it uses, and which factors it learns
// itself. Forks use several fields for the latter, some of which only set the initial values.
#pragma once

#include "proto/params/normalization.pb.h"

namespace crema {

// A scale per channel. NVCaffe: scale_bias, or a filler of either blob. Intel's fork: a filler,
// bias_term or use_weight_bias, of which false means none.
inline bool learns_scale(const BatchNormParameter& p) {
  if (p.has_use_weight_bias()) return p.use_weight_bias();
  return p.scale_bias() || p.bias_term() || p.has_scale_filler() || p.has_filler() ||
         p.has_bias_filler() || p.has_shift_filler();
}

// A bias, too: always, unless a file of Intel's fork says bias_term: false.
inline bool learns_bias(const BatchNormParameter& p) {
  return learns_scale(p) && (!p.has_bias_term() || p.bias_term());
}

// Whether it normalizes with stored statistics instead of those of the batch.
inline bool uses_stored_statistics(const BatchNormParameter& p, bool training) {
  return p.has_use_global_stats() ? p.use_global_stats() : !training;
}

}  // namespace crema

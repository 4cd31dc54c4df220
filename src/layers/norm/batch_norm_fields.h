// Which factors a BatchNorm learns itself: forks use several fields for that, some of which only
// set the initial values.
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

}  // namespace crema

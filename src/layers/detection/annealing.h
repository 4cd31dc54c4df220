// Quantities that depend on the number of forward passes. Host and device code.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "layers/layer.h"

namespace crema {

// The index of a forward pass, correct also when a CUDA graph replays the pass.
struct PassNumber {
  uint64_t pass = 0;
  const uint64_t* live = nullptr;

  explicit PassNumber(const Forward& forward) : pass(forward.pass), live(forward.live_pass) {}
  CREMA_HD double get() const { return static_cast<double>(live ? *live : pass); }
};

}  // namespace crema

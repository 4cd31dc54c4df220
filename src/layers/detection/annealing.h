// Quantities that change with the number of forward passes. For code of both devices.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "layers/layer.h"

namespace crema {

// The number of a forward pass, also where a CUDA graph repeats it.
struct PassNumber {
  uint64_t pass = 0;
  const uint64_t* live = nullptr;

  explicit PassNumber(const Forward& forward) : pass(forward.pass), live(forward.live_pass) {}
  CREMA_HD double get() const { return static_cast<double>(live ? *live : pass); }
};

}  // namespace crema

// The windows of adaptive pooling, and its implementations.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/core/kernel_registry.h"
#include "kernels/pool/adaptive_pool.h"

namespace crema {

extern KernelsOf<decltype(adaptive_pool)> adaptive_pool_kernels;
extern KernelsOf<decltype(adaptive_pool_gradient)> adaptive_pool_gradient_kernels;

// The windows along one axis.
struct AdaptiveWindows {
  int64_t in, out;
  // The inputs of output o: [input_begin, input_end).
  CREMA_HD int64_t input_begin(int64_t o) const { return o * in / out; }
  CREMA_HD int64_t input_end(int64_t o) const { return ((o + 1) * in + out - 1) / out; }
  // The outputs whose windows contain input i: [output_begin, output_end).
  CREMA_HD int64_t output_begin(int64_t i) const { return i * out / in; }
  CREMA_HD int64_t output_end(int64_t i) const { return ((i + 1) * out + in - 1) / in; }
};

}  // namespace crema

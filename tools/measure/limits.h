// Measures a device's peak rates.
#pragma once

#include "device/context.h"
#include "tensor/precision.h"

namespace crema {

struct Limits {
  double operations = 0;  // per second, of a large GEMM in the given precision
  double bytes = 0;       // per second, to and from memory
};

// Takes about a second.
Limits measure_limits(Context& context, Precision precision);

}  // namespace crema

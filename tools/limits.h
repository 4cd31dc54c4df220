// What a device can do at most, measured.
#pragma once

#include "device/context.h"
#include "tensor/precision.h"

namespace crema {

struct Limits {
  double operations = 0;  // a second, of a large matrix product in a precision
  double bytes = 0;       // a second, to and from memory
};

// Takes about a second.
Limits measure_limits(Context& context, Precision precision);

}  // namespace crema

// Division of integers that rounds up.
#pragma once

#include "base/host_device.h"

namespace crema {

// The smallest integer that is at least a / b, for a >= 0 and b > 0 of any integer types; a + b - 1
// must fit into their common type, which is that of the result.
template <typename A, typename B>
CREMA_HD constexpr auto ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

}  // namespace crema

// Makes a net that fails smaller.
#pragma once

#include "fuzz/random_nets/comparisons.h"

namespace crema::tests {

// The net without layers that the failure of this comparison does not need.
RandomNet shrink(RandomNet net, const Comparison& comparison);

}  // namespace crema::tests

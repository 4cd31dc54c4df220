// Depthwise convolution of channels-last images: each channel has its own kernel, so a pass does
// little more than read x and write y. The weights (C, 1, kernel...) store each channel's taps
// contiguously in every format.
#pragma once

#include <string>

#include "kernels/conv/conv.h"

namespace crema {

// What all implementations need; false with the reason.
bool is_depthwise(const ConvCase& c, std::string& reason);

}  // namespace crema

// Limits for the coordinates of boxes read from files.
#pragma once

#include <cmath>

namespace crema {

// In pixels. No image extends as far, and floats still represent every pixel.
constexpr double kFarthestPixel = 1 << 24;

// Whether a coordinate is plausible: neither NaN nor infinite nor so large that arithmetic with it
// goes wrong.
inline bool is_pixel(double at) { return std::abs(at) <= kFarthestPixel; }

}  // namespace crema

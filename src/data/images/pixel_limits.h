// Where boxes may lie that come from a file.
#pragma once

#include <cmath>

namespace crema {

// In pixels. No image reaches as far, and floats still hold every pixel.
constexpr double kFarthestPixel = 1 << 24;

// Whether a coordinate can be meant: neither NaN nor infinite nor so far away that arithmetic with
// it goes wrong.
inline bool is_pixel(double at) { return std::abs(at) <= kFarthestPixel; }

}  // namespace crema

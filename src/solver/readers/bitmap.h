// Small images embedded in an HTML page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

// A "data:image/bmp;base64,..." address for an <img>. values: `channels` planes (blue, green, red
// when there are three: the order of Caffe's images; otherwise their mean is shown in grey) of
// height x width, scaled so that the smallest value is black and the largest white.
std::string picture(const float* values, int channels, int height, int width);

}  // namespace crema

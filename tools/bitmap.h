// Small pictures inside a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

// A "data:image/bmp;base64,..." address for an <img>. values: `channels` planes (blue, green, red
// when there are three: the order of Caffe's images; otherwise their mean is shown in grey) of
// height x width, scaled so that the picture's smallest value is black and its largest white.
std::string picture(const float* values, int channels, int height, int width);

}  // namespace crema

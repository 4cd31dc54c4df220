// Bilinear resizing with exactly OpenCV's values, for programs that resize a few images and should not
// wait until OpenCV is loaded. OpenCV is faster for many.
#pragma once

#include "data/images/image.h"

namespace crema {

// For images of 1, 3 or 4 channels that are not empty, to at least 1 x 1.
void resize_linear(int64_t height, int64_t width, Image& image);

}  // namespace crema

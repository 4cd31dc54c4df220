// Bilinear resizing that takes the mean of all pixels which a smaller image leaves out, as Python's
// imaging library does it: the same bytes.
#pragma once

#include "data/images/image.h"

namespace crema {

// Error for an empty image or size.
Image smooth_resize(const Image& image, int64_t height, int64_t width);

}  // namespace crema

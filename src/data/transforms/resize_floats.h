// Bilinear resizing of an image to real numbers, which are not rounded to bytes: what OpenCV's
// resize does to an image of floats.
#pragma once

#include <cstdint>

#include "data/images/image.h"
#include "data/transforms/mean_table.h"

namespace crema {

// A side that is multiplied by `factor`: to the nearest integer, halves to the even one.
int64_t scaled_side(int64_t side, double factor);

// Both sides of an image of three channels are multiplied by `factor`. `to` has room for (3,
// scaled_side(height), scaled_side(width)); it gets the values after the mean is subtracted, of the
// mirrored image if `flipped`.
void resize_floats(const Image& image, const MeanTable& mean, double factor, bool flipped,
                   float* to);

}  // namespace crema

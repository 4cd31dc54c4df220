// Noise: the changes of an image that noise_param names, in the order grey, blur, histogram,
// histogram by regions, JPEG, erosion, posterizing, inversion, single pixels, HSV, Lab.
#pragma once

#include "data/images/image.h"
#include "data/transforms/draws.h"
#include "proto/data.pb.h"

namespace crema {

// Error says which setting cannot be.
void check_noise(const NoiseParameter& parameter);

void add_noise(const NoiseParameter& parameter, Image& image, Draws& draws);

}  // namespace crema

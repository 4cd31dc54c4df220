// Noise: the image changes that noise_param names, in the order grey, blur, histogram equalization,
// the same by regions, JPEG, erosion, posterizing, inversion, single pixels, HSV, Lab.
#pragma once

#include "data/images/image.h"
#include "data/transforms/rng.h"
#include "proto/data.pb.h"

namespace crema {

// Error says which setting is invalid.
void check_noise(const NoiseParameter& parameter);

void add_noise(const NoiseParameter& parameter, Image& image, Rng& rng);

}  // namespace crema

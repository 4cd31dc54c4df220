// Mosaic: four images with their boxes as one, around a random point (transform_param { augment {
// mosaic } }). Each keeps its proportions and is as small as it can be and still cover its quarter;
// what reaches beyond the quarter is cut off, at random on both sides.
#pragma once

#include <array>

#include "data/images/image.h"
#include "data/transforms/regions.h"
#include "data/transforms/rng.h"

namespace crema {

struct BoxedImage {
  Image image;
  std::vector<Object> objects;
};

// Has the size of the first one, whose quarter is drawn. All images have the same channels.
BoxedImage join_four(const AugmentMosaic& how, const std::array<BoxedImage, 4>& images, Rng& rng);

}  // namespace crema

// RandAugment (Cubuk et al., 2020): changes drawn from a list of 14, all of one strength from 0 to
// 10. Ranges are those of torchvision's, whose magnitude 30 is 10 here:
//   shear in x or y       to 0.3 columns a row, or rows a column, from the upper left corner
//   translation x, y      to 150/331 of the side, in whole pixels
//   rotation              to 30 degrees
//   brightness, saturation, contrast, sharpness: a factor from 0.1 to 1.9
//   posterize             keeps 8 to 4 bits
//   solarize              from 255 on at strength 0, all at 10
//   autocontrast, equalize, identity have no strength
// Changes with a direction choose it at random.
#pragma once

#include "data/transforms/rng.h"
#include "data/transforms/warp.h"

namespace crema {

enum class RandOperation {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  saturation,
  contrast,
  sharpness,
  posterize,
  solarize,
  autocontrast,
  equalize
};
constexpr int kRandOperations = 14;

struct RandChange {
  RandOperation operation;
  float strength;  // from 0 to 10, or the negative of that
};

RandChange draw_change(float strength, Rng& rng);
// Adds a change that moves pixels to the warp; a no-op for others.
void add_to_warp(const RandChange& change, Warp& warp);
// Makes a change that leaves pixels in place; a no-op for others.
void change_pixels(const RandChange& change, bool red_first, Image& image);

}  // namespace crema

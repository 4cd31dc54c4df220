// Changes of an image's pixels that leave them in place; results are rounded. Three channels are
// colours, blue first or, with `red_first`, red. Images of other numbers of channels have no
// colours: each channel is its own grey.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "data/images/image.h"

namespace crema {

// The nearest value that a pixel can have.
inline uint8_t saturated(float value) {
  return value > 0 ? static_cast<uint8_t>(std::min(std::nearbyint(value), 255.f)) : uint8_t{0};
}

// factor * x.
void change_brightness(float factor, Image& image);
// m + factor * (x - m), where m is the mean grey, a whole number.
void change_contrast(float factor, bool red_first, Image& image);
// g + factor * (x - g), where g is the pixel's grey.
void change_saturation(float factor, bool red_first, Image& image);
// Turns the hue of HSV by a share of the circle.
void change_hue(float circles, bool red_first, Image& image);
// The grey (19595 red + 38470 green + 7471 blue) / 65536, rounded, in all three channels.
void make_grey(bool red_first, Image& image);
// Stretches each channel to the range from 0 to 255.
void stretch_contrast(Image& image);
// Makes the values of each channel equally frequent.
void equalize(Image& image);
// Inverts values from `threshold` on.
void solarize(float threshold, Image& image);
// Keeps the upper `bits`.
void posterize(int bits, Image& image);

// s + factor * (x - s), where s is the mean of 3 x 3 pixels in which the centre one counts 5 times;
// pixels at the border do not change.
void change_sharpness(float factor, Image& image);
// Gaussian blur. Pixels beyond the border equal the last one.
void blur(float deviation, Image& image);
// Adds normally distributed numbers.
void add_gaussian_noise(float deviation, const Random& random, Image& image);

}  // namespace crema

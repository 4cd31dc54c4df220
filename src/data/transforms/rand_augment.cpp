#include "data/transforms/rand_augment.h"

#include <cmath>

#include "data/transforms/pixels.h"

namespace crema {
namespace {

constexpr float kMostStrength = 10;

bool has_direction(RandOperation operation) {
  return operation >= RandOperation::shear_x && operation <= RandOperation::sharpness;
}

}  // namespace

RandChange draw_change(float strength, Rng& rng) {
  const auto operation = static_cast<RandOperation>(rng.pick(kRandOperations));
  const bool negative = rng.chance(0.5f);
  return {operation, negative && has_direction(operation) ? -strength : strength};
}

void add_to_warp(const RandChange& change, Warp& warp) {
  const float share = change.strength / kMostStrength;
  const auto pixels = [&](int64_t side) {
    return std::trunc(share * 150.f / 331 * static_cast<float>(side));
  };
  switch (change.operation) {
    case RandOperation::shear_x:
      return warp.shear(0.3 * share, 0, 0, 0);
    case RandOperation::shear_y:
      return warp.shear(0, 0.3 * share, 0, 0);
    case RandOperation::translate_x:
      return warp.translate(pixels(warp.width), 0);
    case RandOperation::translate_y:
      return warp.translate(0, pixels(warp.height));
    case RandOperation::rotate:
      return warp.rotate(30 * share);
    default:
      return;
  }
}

void change_pixels(const RandChange& change, bool red_first, Image& image) {
  const float share = change.strength / kMostStrength, factor = 1 + 0.9f * share;
  switch (change.operation) {
    case RandOperation::brightness:
      return change_brightness(factor, image);
    case RandOperation::saturation:
      return change_saturation(factor, red_first, image);
    case RandOperation::contrast:
      return change_contrast(factor, red_first, image);
    case RandOperation::sharpness:
      return change_sharpness(factor, image);
    case RandOperation::posterize:
      return posterize(8 - static_cast<int>(std::nearbyint(4 * share)), image);
    case RandOperation::solarize:
      return solarize(255 * (1 - share), image);
    case RandOperation::autocontrast:
      return stretch_contrast(image);
    case RandOperation::equalize:
      return equalize(image);
    default:
      return;
  }
}

}  // namespace crema

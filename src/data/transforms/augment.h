// Augmentation: the steps of transform_param that change an image before its values are read:
// distort_param, expand_param, random_aspect_ratio_param, random_resize_param (or that of one fork:
// img_rand_resize_..., rand_resize_ratio_..., ..._stretch_...), resize_param, noise_param,
// color_order, multi_scale and fix_crop, in this order. A no-op without any of them.
#pragma once

#include "data/images/image.h"
#include "data/transforms/regions.h"

namespace crema {

class Augmentation {
 public:
  // Error says which setting is invalid. multi_scale and fix_crop are for training only.
  explicit Augmentation(const TransformationParameter& parameter, bool training = true);

  // False: apply() does nothing.
  bool any() const { return any_ || reverses_colors(); }
  // It only puts red first: reverses_colors().
  bool only_reverses_colors() const { return !any_ && reverses_colors(); }
  bool reverses_colors() const;
  // Moves the objects of an image of this size to their positions after resize().
  void apply(Image& image, Rng& rng) const;

  // The steps that SSD applies to images with objects.
  void distort(Image& image, Rng& rng) const;
  // Returns the region of the image that the result shows: all of it, or more.
  Region expand(Image& image, Rng& rng) const;
  void resize(Image& image, Rng& rng) const;
  // Noise and colour order, which do not move objects.
  void finish(Image& image, Rng& rng) const;
  // Moves the objects of an image of this size to where they are after resize().
  void resize_objects(int64_t height, int64_t width, std::vector<Object>& objects) const;

 private:
  void crop_at_random(Image& image, Rng& rng) const;
  void resize_at_random(Image& image, Rng& rng) const;
  bool stretches() const;
  void stretch(Image& image, Rng& rng) const;
  bool places_crop() const { return parameter_.multi_scale() || parameter_.fix_crop(); }
  void place_crop(Image& image, Rng& rng) const;

  TransformationParameter parameter_;
  bool training_, any_ = false;  // any_: apart from the order of colours
  int64_t crop_height_, crop_width_;
};

}  // namespace crema

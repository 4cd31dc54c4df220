// Augmentation: the steps of transform_param that change an image before its numbers are taken:
// distort_param, expand_param, random_aspect_ratio_param, random_resize_param (or that of one fork:
// img_rand_resize_..., rand_resize_ratio_..., ..._stretch_...), resize_param, noise_param,
// color_order, multi_scale and fix_crop, in this order. With none of them nothing is done.
#pragma once

#include "data/images/image.h"
#include "data/transforms/regions.h"

namespace crema {

class Augmentation {
 public:
  // Error says which setting cannot be. multi_scale and fix_crop are for training.
  explicit Augmentation(const TransformationParameter& parameter, bool training = true);

  // False: apply() does nothing.
  bool any() const { return any_; }
  // All steps, for images without objects.
  void apply(Image& image, Draws& draws) const;

  // The steps that SSD takes with objects.
  void distort(Image& image, Draws& draws) const;
  // What of the image the result shows: more than all of it, or all of it.
  Region expand(Image& image, Draws& draws) const;
  void resize(Image& image, Draws& draws) const;
  // Noise and the order of colours, which leave objects where they are.
  void finish(Image& image, Draws& draws) const;
  // The objects of an image of this size as they lie after resize().
  void resize_objects(int64_t height, int64_t width, std::vector<Object>& objects) const;

 private:
  void crop_at_random(Image& image, Draws& draws) const;
  void resize_at_random(Image& image, Draws& draws) const;
  bool stretches() const;
  void stretch(Image& image, Draws& draws) const;
  bool places_crop() const { return parameter_.multi_scale() || parameter_.fix_crop(); }
  void place_crop(Image& image, Draws& draws) const;

  TransformationParameter parameter_;
  bool training_, any_ = false;
  int64_t crop_height_, crop_width_;
};

}  // namespace crema

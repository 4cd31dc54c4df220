// The change that DetectNetTransformation applies to an image: drawn at random once per image, then
// read by all kernels that move its pixels and boxes. Coordinates are in pixels: (0, 0) is the
// centre of the first one.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace crema {

struct DetectNetChange {
  double hue = 0, saturation = 1;  // hue: degrees to add; saturation: factor
  bool flip = false;
  double scale_x = 1, scale_y = 1;    // after that
  double width = 0, height = 0;       // in the scaled image
  double cosine = 1, sine = 0;        // of the angle by which it is then rotated, clockwise
  double middle_x = 0, middle_y = 0;  // where its centre moves to
  double left = 0, top = 0;           // of the crop of this image

  // Maps the scaled image to the result, and back.
  CREMA_HD void turn(double& x, double& y) const {
    const double dx = x - width / 2, dy = y - height / 2;
    x = cosine * dx - sine * dy + middle_x - left;
    y = sine * dx + cosine * dy + middle_y - top;
  }
  CREMA_HD void turn_back(double& x, double& y) const {
    const double dx = x + left - middle_x, dy = y + top - middle_y;
    x = cosine * dx + sine * dy + width / 2;
    y = -sine * dx + cosine * dy + height / 2;
  }
  // Whether the point is inside the scaled image.
  CREMA_HD bool has(double x, double y) const {
    return x >= -0.5 && x < width - 0.5 && y >= -0.5 && y < height - 0.5;
  }
};

// The fields of detectnet_augmentation_param, and the image sizes.
struct AugmentationParams {
  bool training = false;
  double hue_prob = 0, hue = 0, desaturation_prob = 0, desaturation = 0, flip_prob = 0;
  double scale_prob = 0, scale_min = 1, scale_max = 1, rotation_prob = 0, rotation = 0;
  double crop_prob = 0;
  int64_t shift_x = 0, shift_y = 0;
  int64_t width = 0, height = 0, out_width = 0, out_height = 0;

  // Start of the crop along an axis. at: from 0 to 1.
  CREMA_HD static double begin(double at, double extent, int64_t wanted, int64_t shift) {
    return round(at * (extent - static_cast<double>(wanted - shift)) -
                 static_cast<double>(shift / 2));
  }

  CREMA_HD DetectNetChange draw(const Random& random, int64_t image) const {
    const auto number = [&](int which) -> double { return random.uniform(image * 16 + which); };
    DetectNetChange c;
    c.width = static_cast<double>(training ? width : out_width);
    c.height = static_cast<double>(training ? height : out_height);
    double extent_x = c.width, extent_y = c.height;
    if (training) {
      if (number(0) < hue_prob) c.hue = fmax(-180.0, fmin(180.0, (2 * number(1) - 1) * hue));
      if (number(2) < desaturation_prob) c.saturation = 1 - number(3) * desaturation;
      c.flip = number(4) < flip_prob;
      if (number(5) < scale_prob) {
        const double scale = scale_min + (scale_max - scale_min) * number(6);
        c.width = fmax(1.0, round(c.width * scale));
        c.height = fmax(1.0, round(c.height * scale));
      }
      extent_x = c.width;
      extent_y = c.height;
      if (number(7) < rotation_prob) {
        const double angle = (2 * number(8) - 1) * rotation * (3.14159265358979323846 / 180);
        c.cosine = cos(angle);
        c.sine = sin(angle);
        // The crop is chosen among the whole pixels that the rotated image touches.
        const double reach_x = (c.width * fabs(c.cosine) + c.height * fabs(c.sine)) / 2;
        const double reach_y = (c.width * fabs(c.sine) + c.height * fabs(c.cosine)) / 2;
        c.middle_x = c.width / 2 - floor(c.width / 2 - reach_x);
        c.middle_y = c.height / 2 - floor(c.height / 2 - reach_y);
        extent_x = ceil(c.width / 2 + reach_x) - floor(c.width / 2 - reach_x) + 1;
        extent_y = ceil(c.height / 2 + reach_y) - floor(c.height / 2 - reach_y) + 1;
      }
      const bool anywhere = number(9) < crop_prob;
      c.left = begin(anywhere ? number(10) : 0.5, extent_x, out_width, anywhere ? shift_x : 0);
      c.top = begin(anywhere ? number(11) : 0.5, extent_y, out_height, anywhere ? shift_y : 0);
    }
    if (c.sine == 0) {
      c.middle_x = c.width / 2;
      c.middle_y = c.height / 2;
    }
    c.scale_x = c.width / static_cast<double>(width);
    c.scale_y = c.height / static_cast<double>(height);
    return c;
  }
};

}  // namespace crema

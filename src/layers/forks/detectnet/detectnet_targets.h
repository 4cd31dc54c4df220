// DetectNetTransformation's target maps: the boxes after the image's change, and the cells that the
// centre region of each covers. For .cu files only.
#pragma once

#include <cmath>

#include "layers/forks/detectnet/detectnet_change.h"

namespace crema {

constexpr int64_t kDetectNetBox = 16;      // values per row of boxes
constexpr int64_t kDetectNetMap = 8;       // channels before those of the classes
constexpr double kMinArea = 1.1920929e-7;  // boxes with a smaller area are dropped

// Whether the header row before an image's boxes is valid; without boxes the width does not matter.
template <typename T>
CREMA_HD bool has_boxes(const T* header, int64_t rows) {
  return header[0] == T(0) ||
         (header[0] > T(0) && header[0] <= static_cast<T>(rows) && header[1] == T(kDetectNetBox));
}

struct TargetBox {
  double left, top, right, bottom;                          // pixels of the result
  double cover_left, cover_top, cover_right, cover_bottom;  // the centre region that it covers
  double share;                                             // the object weight
  int channel;                                              // the class; -1: not trained
};

struct TargetRule {
  double stride, scale, maximum, minimum, image_width, image_height;
  bool at_most, crop, by_area;

  CREMA_HD double covered(double size) const {
    const double part = size * scale;
    return at_most ? fmin(maximum, part) : fmin(size, fmax(minimum, part));
  }
};

// Row of boxes -> TargetBox.
template <typename T>
struct MoveBoxes {
  const T* boxes;
  int64_t rows;
  const DetectNetChange* changes;
  int64_t width;  // the input images
  TargetRule rule;
  const float* classes;  // pairs: class in the labels, its channel
  int64_t class_count;
  TargetBox* targets;

  CREMA_HD void operator()(int64_t i) const {
    const int64_t image = i / rows, row = i % rows;
    const T* header = boxes + image * (rows + 1) * kDetectNetBox;
    const T* box = header + (row + 1) * kDetectNetBox;
    const DetectNetChange& c = changes[image];
    TargetBox t{};
    t.channel = -1;
    for (int64_t k = 0; k < class_count; ++k) {
      if (static_cast<double>(row) < static_cast<double>(header[0]) &&
          floor(static_cast<double>(box[5])) == static_cast<double>(classes[2 * k]))
        t.channel = static_cast<int>(classes[2 * k + 1]);
    }
    double x = box[0], wide = box[2], high = box[3];
    if (c.flip) x = static_cast<double>(width) - x - wide - 1;
    x *= c.scale_x;
    wide *= c.scale_x;
    high *= c.scale_y;
    double middle_x = x + wide / 2, middle_y = box[1] * c.scale_y + high / 2;
    c.turn(middle_x, middle_y);
    t.left = middle_x - wide / 2;
    t.top = middle_y - high / 2;
    t.right = t.left + wide;
    t.bottom = t.top + high;
    if (rule.crop) {
      t.left = fmax(t.left, 0.0);
      t.top = fmax(t.top, 0.0);
      t.right = fmin(t.right, rule.image_width);
      t.bottom = fmin(t.bottom, rule.image_height);
    }
    wide = t.right - t.left;
    high = t.bottom - t.top;
    if (!(wide > 0 && high > 0 && wide * high >= kMinArea)) t.channel = -1;
    const double cover_wide = rule.covered(wide), cover_high = rule.covered(high);
    t.cover_left = (t.left + t.right - cover_wide) / 2;
    t.cover_top = (t.top + t.bottom - cover_high) / 2;
    t.cover_right = t.cover_left + cover_wide;
    t.cover_bottom = t.cover_top + cover_high;
    t.share = rule.stride * rule.stride / (cover_wide * cover_high);
    if (!rule.by_area) t.share = fmax(1.0, t.share);
    targets[i] = t;
  }
};

template <typename T>
struct FillMaps {
  const T* boxes;
  const TargetBox* targets;
  int64_t rows, channels, height, width;
  double stride;
  T* y;
  // row: of a map, with all maps stacked vertically.
  CREMA_HD void operator()(int64_t row, int64_t column) const {
    const int64_t image = row / height, line = row % height, plane = height * width;
    const T* header = boxes + image * (rows + 1) * kDetectNetBox;
    const double left = static_cast<double>(column) * stride,
                 top = static_cast<double>(line) * stride;
    int64_t last = -1;
    for (int64_t k = 0; k < rows; ++k) {
      const TargetBox& t = targets[image * rows + k];
      const double wide = fmin(t.cover_right, left + stride) - fmax(t.cover_left, left),
                   high = fmin(t.cover_bottom, top + stride) - fmax(t.cover_top, top);
      if (t.channel >= 0 && wide > 0 && high > 0 && wide * high / (stride * stride) > kMinArea)
        last = k;
    }
    T* out = y + image * channels * plane + line * width + column;
    // On the CPU an invalid number of boxes is an Error.
    const bool good = has_boxes(header, rows);
    const T nothing = good ? T(0) : T(NAN);
    for (int64_t k = 0; k < channels; ++k) out[k * plane] = nothing;
    if (last < 0 || !good) return;
    const TargetBox& t = targets[image * rows + last];
    out[0] = T(1);
    out[plane] = static_cast<T>(t.left - left);
    out[2 * plane] = static_cast<T>(t.top - top);
    out[3 * plane] = static_cast<T>(t.right - left);
    out[4 * plane] = static_cast<T>(t.bottom - top);
    out[5 * plane] = static_cast<T>(1 / (t.right - t.left));
    out[6 * plane] = static_cast<T>(1 / (t.bottom - t.top));
    out[7 * plane] = static_cast<T>(t.share);
    out[(kDetectNetMap + t.channel) * plane] = T(1);
  }
};

}  // namespace crema

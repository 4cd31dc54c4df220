// Feature maps of the multi-scale detector (MS-CNN): each position represents a box of fixed size
// around it, its field. Predictions are class scores and the object's box relative to the field;
// targets are what ImageGtData writes.
#pragma once

#include "layers/detection/box_regression.h"
#include "tensor/shape.h"

namespace crema {

// Fields, and the meaning of the four values of a prediction: shift of the centre in units of the
// field's size and logarithm of the size ratio, minus a mean, over a standard deviation.
struct FieldBoxes {
  float height, width, step;  // of the field; step: pixels between positions
  float max_shift, max_log;
  float mean[4], deviation[4];

  FieldBoxes(float field_h, float field_w, float downsample_rate, float field_whr, float field_xyr,
             const BBoxRegParameter& regression)
      : height(field_h), width(field_w), step(downsample_rate) {
    require(field_h > 0 && field_w > 0 && downsample_rate > 0,
            "field_h, field_w and downsample_rate must be above 0, but are ", field_h, ", ",
            field_w, " and ", downsample_rate);
    require(field_whr >= 1 && field_xyr > 0, "field_whr is ", field_whr, " and field_xyr ",
            field_xyr, ", but must be at least 1, and above 0");
    max_shift = 1 / field_xyr;
    max_log = std::log(field_whr);
    const BoxRegression r(regression);
    std::copy(r.mean, r.mean + 4, mean);
    std::copy(r.deviation, r.deviation + 4, deviation);
  }

  template <typename T>
  CREMA_HD static T within(T x, T minimum, T maximum) {
    return x < minimum ? minimum : x > maximum ? maximum : x;
  }
  CREMA_HD float middle(int64_t position) const {
    return (static_cast<float>(position) + 0.5f) * step;
  }

  // The box of the prediction at row h and column w; its four values are `stride` apart.
  template <typename T>
  CREMA_HD Box box(const T* code, int64_t stride, int64_t h, int64_t w) const {
    float c[4];
    for (int k = 0; k < 4; ++k)
      c[k] = static_cast<float>(code[k * stride]) * deviation[k] + mean[k];
    const float x = within(c[0], -max_shift, max_shift) * width + middle(w),
                y = within(c[1], -max_shift, max_shift) * height + middle(h);
    const float half_width = width * expf(within(c[2], -max_log, max_log)) / 2,
                half_height = height * expf(within(c[3], -max_log, max_log)) / 2;
    return {x - half_width, y - half_height, x + half_width, y + half_height};
  }
};

// The field that a layer's parameters describe.
template <typename Parameters>
FieldBoxes field_boxes(const Parameters& p, const BBoxRegParameter& regression) {
  return {static_cast<float>(p.field_h()),
          static_cast<float>(p.field_w()),
          static_cast<float>(p.downsample_rate()),
          p.field_whr(),
          p.field_xyr(),
          regression};
}

// Channels of a target map: class (0 is background), the object's centre (2 channels), width and
// height, and the field's overlap with an object.
constexpr int kTargetChannels = 6;

// Target maps, accessed by position.
template <typename T>
struct FieldTargets {
  const T* data;
  int64_t positions;  // of a map
  T max_overlap;      // of background
  bool objectness, has_ignore;
  int ignore;

  CREMA_HD T at(int64_t image, int channel, int64_t position) const {
    return data[(image * kTargetChannels + channel) * positions + position];
  }
  CREMA_HD int label(int64_t image, int64_t position) const {
    const int label = static_cast<int>(at(image, 0, position));
    return objectness && label > 1 ? 1 : label;
  }
  CREMA_HD bool ignored(int label) const { return has_ignore && label == ignore; }
  CREMA_HD bool is_object(int label) const { return label != 0 && !ignored(label); }
  CREMA_HD bool is_background(int64_t image, int64_t position) const {
    return label(image, position) == 0 && !ignored(0) &&
           at(image, kTargetChannels - 1, position) < max_overlap;
  }
};

// Checks the shapes of predictions and targets.
template <typename Parameter>
void check_field_maps(const Parameter& p, const Shape& predictions, const Shape& targets) {
  require(p.coord_num() == 4, "coord_num is ", p.coord_num(), ", but a box has 4 numbers");
  require(p.cls_num() >= 2, "cls_num, the number of classes with background, is ", p.cls_num(),
          ", but must be at least 2");
  require(!p.objectness() || p.cls_num() == 2,
          "objectness: true needs cls_num: 2, an object and background, not ", p.cls_num());
  require(predictions.axes() == 4 && predictions[1] == static_cast<int64_t>(p.cls_num()) + 4,
          "the predictions are ", predictions.brief(), ", but cls_num: ", p.cls_num(),
          " needs N x ", p.cls_num() + 4,
          " x H x W: a score for each class and 4 numbers of a box");
  const Shape wanted{predictions[0], kTargetChannels, predictions[2], predictions[3]};
  require(targets == wanted, "the targets are ", targets.brief(),
          ", but with these predictions must be ", wanted.brief());
}

}  // namespace crema

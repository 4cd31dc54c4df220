// Transform: from a decoded record to the numbers that a net reads (transform_param).
//   out[c,y,x] = (in[c, y + top, x + left] - mean) * scale, mirrored left to right or not.
// Of optical flow (is_flow, flow) 255 - in stands for in where a mirror turns the x component.
// The crop is random in phase TRAIN and central in TEST; `mirror` tosses a coin in both.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "data/images/record.h"
#include "data/transforms/augment.h"

namespace crema {

// What a transform needs to know of a record's place: where the crop begins, and the coin.
struct Cut {
  int64_t top, left;
  bool mirror;
};

// The numbers of a transform, in a form that a GPU can copy. A crop of 0: none.
struct TransformNumbers {
  float scale = 1;
  int64_t crop_height = 0, crop_width = 0;
  bool mirror = false, training = false;
  bool flow = false;  // every second channel from the first on turns its sign with a mirror

  CREMA_HD static int64_t pick(uint32_t word, int64_t choices) {
    return static_cast<int64_t>((static_cast<uint64_t>(word) * static_cast<uint64_t>(choices)) >>
                                32);
  }
  CREMA_HD Cut cut(int64_t height, int64_t width, const Random::Four& draws) const {
    Cut c{0, 0, mirror && (draws.v[0] & 1) != 0};
    if (crop_height > 0) {
      const int64_t spare_rows = height - crop_height, spare_columns = width - crop_width;
      c.top = training ? pick(draws.v[1], spare_rows + 1) : spare_rows / 2;
      c.left = training ? pick(draws.v[2], spare_columns + 1) : spare_columns / 2;
    }
    return c;
  }
};

class Transform {
 public:
  // `folder`: of the prototxt, where mean_file is looked up when the working directory has none.
  Transform(const TransformationParameter& parameter, bool training, const std::string& folder,
            Log& log);

  // The colour that encoded images are decoded to.
  Color color() const { return color_; }
  // Changes the image of a record as the augmentation of transform_param says; nothing where there
  // is none.
  void augment(Record& record, Draws draws) const;
  const Augmentation& augmentation() const { return augmentation_; }
  // The shape that comes out for a record of this shape; Error says why such a record cannot be
  // transformed.
  Shape output(const Shape& record) const;
  // What the result depends on at random comes from `draws`. `out` has room for
  // output(record.shape()).
  void apply(const Record& record, const Random::Four& draws, float* out) const;

  // With the mean of a clip one for each of its frames, with that frame's mean; else this one.
  std::vector<Transform> of_frames() const;

  const TransformNumbers& numbers() const { return numbers_; }
  // One for each input value, or none; one for each channel, or one, or none.
  const std::vector<float>& mean_image() const { return mean_image_; }
  const Shape& mean_shape() const { return mean_shape_; }
  const std::vector<float>& mean_values() const { return mean_values_; }

 private:
  TransformNumbers numbers_;
  Augmentation augmentation_;
  Color color_ = Color::as_stored;
  std::string mean_file_;
  Shape mean_shape_;
  std::vector<float> mean_image_, mean_values_;
};

}  // namespace crema

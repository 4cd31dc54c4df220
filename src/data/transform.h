// Transform: from a decoded record to the numbers that a net reads (transform_param).
//   out[c,y,x] = (in[c, y + top, x + left] - mean) * scale, mirrored left to right or not.
// The crop is random in phase TRAIN and central in TEST; `mirror` tosses a coin in both.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "data/record.h"

namespace crema {

class Transform {
 public:
  // `folder`: of the prototxt, where mean_file is looked up when the working directory has none.
  Transform(const TransformationParameter& parameter, bool training, const std::string& folder,
            Log& log);

  // The colour that encoded images are decoded to.
  Color color() const { return color_; }
  // The shape that comes out for a record of this shape; Error says why such a record cannot be
  // transformed.
  Shape output(const Shape& record) const;
  // What the result depends on at random comes from `draws`. `out` has room for
  // output(record.shape()).
  void apply(const Record& record, const Random::Four& draws, float* out) const;

 private:
  float scale_;
  int64_t crop_height_, crop_width_;  // 0: no crop
  bool mirror_, training_;
  Color color_ = Color::as_stored;
  std::string mean_file_;
  Shape mean_shape_;
  std::vector<float> mean_image_;   // one for each input value, or
  std::vector<float> mean_values_;  // one for each channel, or one, or none
};

}  // namespace crema

// Transform: from a decoded record to the values that a net reads (transform_param).
//   out[c,y,x] = (in[c, y + top, x + left] - mean) * scale, mirrored left to right or not.
// With `gray` three channels become one first, which is not rounded:
//   in = 0.299 red + 0.587 green + 0.114 blue
// For optical flow (is_flow, flow) `in` becomes 255 - in where mirroring flips the x component.
// The crop is random in phase TRAIN and central in TEST; `mirror` is random in both, with
// mirror_alternates in the first epoch only: each next one turns it round. `pad` comes before the
// crop: zeros of the result, or the image reflected.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "data/images/record.h"
#include "data/transforms/augment.h"
#include "data/transforms/changes.h"
#include "data/transforms/rng.h"

namespace crema {

// The random numbers for one record: where the crop begins (in the padded image), and whether to
// mirror.
struct Cut {
  int64_t top, left;
  bool mirror;
};

// Which of three channels are red, green and blue for conversion to grey.
enum class GrayOf { none, rgb, bgr };

// The parameters of a transform, in a form that can be copied to a GPU. A crop of 0: none.
struct TransformParams {
  float scale = 1;
  int64_t crop_height = 0, crop_width = 0;
  bool mirror = false, training = false;
  bool flow = false;  // even channels, counted from 0, are inverted when mirrored
  GrayOf gray = GrayOf::none;
  int64_t pad = 0;
  bool reflects = false;    // the padding; otherwise it is zero
  bool alternates = false;  // mirroring

  CREMA_HD static int64_t pick(uint32_t word, int64_t choices) {
    return static_cast<int64_t>((static_cast<uint64_t>(word) * static_cast<uint64_t>(choices)) >>
                                32);
  }
  // Sums of bytes are exact this way, so the quotient is the same on every device.
  CREMA_HD float gray_of(float first, float second, float third) const {
    const float red = gray == GrayOf::rgb ? first : third,
                blue = gray == GrayOf::rgb ? third : first;
    return (299 * red + 587 * second + 114 * blue) / 1000;
  }
  // For an image of this size before padding.
  CREMA_HD Cut cut(int64_t height, int64_t width, const Draw& draw) const {
    Cut c{0, 0, mirror && ((alternates ? draw.alternating : draw.words.v[0]) & 1) != 0};
    if (crop_height > 0) {
      const int64_t spare_rows = height + 2 * pad - crop_height,
                    spare_columns = width + 2 * pad - crop_width;
      c.top = training ? pick(draw.words.v[1], spare_rows + 1) : spare_rows / 2;
      c.left = training ? pick(draw.words.v[2], spare_columns + 1) : spare_columns / 2;
    }
    return c;
  }
  // The row or column of the image that a padded one shows; -1: zeros.
  CREMA_HD int64_t behind_padding(int64_t at, int64_t extent) const {
    const int64_t inside = at - pad;
    if (inside >= 0 && inside < extent) return inside;
    if (!reflects) return -1;
    return inside < 0 ? -inside : 2 * (extent - 1) - inside;
  }
};

class Transform {
 public:
  // `folder`: the prototxt's, where mean_file is looked up when the working directory has none.
  Transform(const TransformationParameter& parameter, bool training, const std::string& folder,
            Log& log);

  // The colour format to which encoded images are decoded.
  Color color() const { return color_; }
  // The part of an image of this size to decode, given what augment() and apply() will draw: the
  // crop, or with scaled_decoding the size that resized_crop needs.
  ImageNeed need(const ImageExtents& size, const Draw& draw, Rng rng) const;
  // Applies the augmentation and then the changes of transform_param to the image of a record; a
  // no-op without any.
  void augment(Record& record, Rng rng) const;
  const Augmentation& augmentation() const { return augmentation_; }
  const Changes& changes() const { return changes_; }
  // Error when `gray` states another order of colours than decoded images have here.
  void check_order_of_decoded() const;
  // Whether a record with this many channels becomes a grey one.
  bool makes_gray(int64_t channels) const { return numbers_.gray != GrayOf::none && channels == 3; }
  int64_t channels(int64_t of_record) const { return makes_gray(of_record) ? 1 : of_record; }
  // The output shape for a record of this shape; Error says why such a record cannot be
  // transformed.
  Shape output(const Shape& record) const;
  // `draw` provides everything random in the result. `out` has room for output(record.shape()).
  void apply(const Record& record, const Draw& draw, float* out) const;

  // With the mean of a clip: one transform per frame, with that frame's mean; otherwise only this
  // one.
  std::vector<Transform> of_frames() const;

  const TransformParams& numbers() const { return numbers_; }
  // One value per element to subtract from, or none; below, one per channel, or one, or none.
  const std::vector<float>& mean_image() const { return mean_image_; }
  const Shape& mean_shape() const { return mean_shape_; }
  const std::vector<float>& mean_values() const { return mean_values_; }

 private:
  // The part of an image of this size that apply() reads.
  ImagePart shown(int64_t height, int64_t width, const Draw& draw) const;
  template <typename Write>
  void with_planes(const Record& record, const Write& write) const;

  TransformParams numbers_;
  Augmentation augmentation_;
  Changes changes_;
  bool red_first_;  // of decoded images, after the augmentation
  bool scaled_;     // JPEGs may be decoded at a half, a quarter or an eighth of their size
  Color color_ = Color::as_stored;
  std::string mean_file_;
  Shape mean_shape_;
  std::vector<float> mean_image_, mean_values_;
};

}  // namespace crema

// LabelImages: images of a list whose labels are images of classes, cropped and mirrored alike.
#pragma once

#include "data/lists/image_files.h"

namespace crema {

struct LabelImageOptions {
  enum class Column { image, number, none };
  Column second = Column::image;  // of the list's lines: a number stands for every pixel
  bool color = false;             // three values a pixel
  bool edges = false;             // resized bilinearly; 1 from half of 255 on, else 0
  int divider = 1;                // of label values, rounded down
  int ignore = 255;               // label of pixels that have none
  std::vector<float> scales;      // one is drawn, by which both images are resized
  bool pad = false;               // add rows and columns where an image is smaller than the crop

  // Another way to scale and crop. Above 0: image and label image are resized by a factor between
  // least_scale and most_scale, and cropped as the transform says; when it says nothing, to the
  // largest multiples of `stride` rows and columns, but at most these.
  int64_t stride = 0;
  float least_scale = 1, most_scale = 1;
  int64_t most_height = INT64_MAX, most_width = INT64_MAX;
  bool balance = false;  // while one value covers 0.8 of the labels, draw again, ten times at most
};

class LabelImages : public Samples {
 public:
  LabelImages(const std::string& list, ImageReading reading, Transform transform,
              LabelImageOptions options);

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  std::string describe(const Turn& turn) const override;
  std::string how_to_equalize() const override;
  void load(const Turn& turn, Sample& sample) const override;
  // Labels are (1, H, W), or (3, H, W) in colour.
  void write(const Turn& turn, Sample& sample, float* data) const override;

 private:
  void read(const ListedImage& listed, Image& image, Image& labels) const;
  void rescale(const Turn& turn, Image& image, Image& labels) const;
  // Adds rows below and columns to the right, of `pixel`, up to the crop.
  void pad(Image& image, const std::vector<uint8_t>& pixel) const;
  struct Part;
  Part draw_part(Draws& draws, const Image& image) const;
  void take_part(const Turn& turn, Image& image, Image& labels) const;

  std::string list_;
  std::vector<ListedImage> images_;
  ImageReading reading_;
  Transform transform_;
  LabelImageOptions options_;
  std::vector<uint8_t> mean_pixel_, ignored_pixel_;  // for padding
};

}  // namespace crema

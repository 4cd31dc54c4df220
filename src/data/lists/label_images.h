// LabelImages: images from a list with class images as labels, cropped and mirrored with them.
#pragma once

#include <optional>

#include "data/lists/image_files.h"
#include "data/loader/image_cache.h"

namespace crema {

// Both images are resized by a random factor between min_scale and max_scale, and cropped as the
// transform says; without a crop there, to the largest multiples of `stride` rows and columns, but
// at most max_height and max_width.
struct StrideCrop {
  int64_t stride = 1;
  float min_scale = 1, max_scale = 1;
  int64_t max_height = INT64_MAX, max_width = INT64_MAX;
  bool balance = false;  // while one value covers 0.8 of the labels, choose again, at most ten
                         // times
};

struct LabelImageOptions {
  enum class Column { image, number, none };
  Column second = Column::image;  // column 2 of the list; a number labels every pixel
  bool color = false;             // three values per pixel
  bool edges = false;             // resized bilinearly; 1 from half of 255 up, otherwise 0
  int divider = 1;                // divisor of label values; the quotient is rounded down
  int64_t shrink = 1;             // divides the label map's height and width (nearest pixel)
  int ignore = 255;               // label of unlabelled pixels
  std::vector<float> scales;      // one is chosen at random, by which both images are resized
  bool pad = false;               // add rows and columns where an image is smaller than the crop
  std::optional<StrideCrop> stride_crop = {};  // instead of `scales`
};

class LabelImages : public Dataset {
 public:
  LabelImages(const std::string& list, ImageReading reading, Transform transform,
              LabelImageOptions options);

  void use_cache(std::unique_ptr<ImageCache> cache) { cache_ = std::move(cache); }

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  std::string describe(const SampleIndex& sample_index) const override;
  std::string how_to_equalize() const override;
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  // Labels are (1, H, W), or (3, H, W) in colour.
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

 private:
  void read(const SampleIndex& sample_index, Image& image, Image& labels) const;
  // One of the two, from its file or from the cache.
  void read_one(int64_t key, const std::string& path, Color color, Interpolation interpolation,
                Image& image) const;
  void rescale(const SampleIndex& sample_index, Image& image, Image& labels) const;
  // From augment; pixels outside the image have the label ignore, or no edge.
  void change(const SampleIndex& sample_index, Image& image, Image& labels) const;
  // Adds rows of `pixel` below and columns to the right, up to the crop.
  void pad(Image& image, const std::vector<uint8_t>& pixel) const;
  struct Part;
  Part draw_part(Rng& rng, const StrideCrop& crop, const Image& image) const;
  void take_part(const SampleIndex& sample_index, const StrideCrop& crop, Image& image,
                 Image& labels) const;

  std::string list_;
  std::vector<ListedImage> images_;
  ImageReading reading_;
  Transform transform_;
  LabelImageOptions options_;
  std::vector<uint8_t> mean_pixel_, ignored_pixel_;  // for padding
  std::unique_ptr<ImageCache> cache_;                // null: none
};

}  // namespace crema

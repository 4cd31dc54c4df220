// WindowDataset: boxes cut out of images and resized to one size, as in R-CNN. A batch has a fixed
// share of objects, which come after the background; each window is drawn independently. Or windows
// come in the order of the list.
#pragma once

#include "data/lists/image_files.h"
#include "data/lists/window_file.h"

namespace crema {

struct WindowOptions {
  int64_t batch_size = 0, first_in_batch = 0;  // size of all ranks' batch, and this one's part
  float object_share = 0;
  int64_t context = 0;    // pixels on each side of the sample that show the surroundings of the box
  bool square = false;    // the smallest square around the box, instead of stretching the box
  bool cache = false;     // keep the image files in memory
  bool in_order = false;  // in the list's order, ignoring object_share
  int64_t mask_size = 0;  // height and width of a mask's window; 0: masks are not read
};

class WindowDataset : public Dataset {
 public:
  // `transform` gives the size of a sample (its crop, which must be square), mean, scale and
  // mirror. A mean image is cropped to its centre.
  WindowDataset(std::string path, WindowFile file, ImageReading reading, Transform transform,
                WindowOptions options);

  int64_t size() const override {
    return static_cast<int64_t>(file_.objects.size() + file_.background.size() +
                                file_.in_order.size());
  }
  // Per image.
  int64_t masks() const { return static_cast<int64_t>(file_.images[0].masks.size()); }
  std::string describe(const SampleIndex& sample_index) const override;
  std::string how_to_equalize() const override { return "the images of a window file"; }
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  // Labels are the class followed by the pixels of the masks, from 0 to 1, mask after mask.
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

 private:
  void write_masks(const ListedWindow& window, const Image& image, bool mirror, float* out) const;
  const ListedWindow& window(const SampleIndex& sample_index) const;
  Random::Four rng(const SampleIndex& sample_index) const {
    return sample_index.random.four(static_cast<uint64_t>(sample_index.position));
  }

  std::string path_;
  WindowFile file_;
  ImageReading reading_;
  Transform transform_;
  WindowOptions options_;
  std::vector<std::string> cached_;  // a file for each image
  int64_t background_ = 0;           // background windows per batch
};

}  // namespace crema

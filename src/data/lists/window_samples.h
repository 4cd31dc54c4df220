// WindowSamples: boxes of images cut out and brought to one size, as R-CNN does. A batch has a
// fixed share of objects, which come after the background; each window is drawn anew, whatever came
// before. Or windows come as they are listed, one after another.
#pragma once

#include "data/lists/image_files.h"
#include "data/lists/window_file.h"

namespace crema {

struct WindowOptions {
  int64_t batch_size = 0;
  float object_share = 0;
  int64_t context = 0;    // pixels of the sample on each side that lie around the box
  bool square = false;    // the smallest square around the box, not the box stretched
  bool cache = false;     // keep the files of images in memory
  bool in_order = false;  // as listed, whatever object_share says
  int64_t mask_size = 0;  // rows and columns of a window of a mask; 0: masks are not read
};

class WindowSamples : public Samples {
 public:
  // `transform` gives the size of a sample, its crop, which must be square; mean, scale and mirror.
  // A mean image is cut to its middle.
  WindowSamples(std::string path, WindowFile file, ImageReading reading, Transform transform,
                WindowOptions options);

  int64_t size() const override {
    return static_cast<int64_t>(file_.objects.size() + file_.background.size() +
                                file_.in_order.size());
  }
  // Of each image.
  int64_t masks() const { return static_cast<int64_t>(file_.images[0].masks.size()); }
  std::string describe(const Turn& turn) const override;
  std::string how_to_equalize() const override { return "the images of a window file"; }
  void load(const Turn& turn, Sample& sample) const override;
  // Labels are the class and, behind it, the pixels of the masks, from 0 to 1, mask after mask.
  void write(const Turn& turn, Sample& sample, float* data) const override;

 private:
  void write_masks(const ListedWindow& window, const Image& image, bool mirror, float* out) const;
  const ListedWindow& window(const Turn& turn) const;
  Random::Four draws(const Turn& turn) const {
    return turn.random.four(static_cast<uint64_t>(turn.position));
  }

  std::string path_;
  WindowFile file_;
  ImageReading reading_;
  Transform transform_;
  WindowOptions options_;
  std::vector<std::string> cached_;  // a file for each image
  int64_t background_ = 0;           // windows of it in a batch
};

}  // namespace crema

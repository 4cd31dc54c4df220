// RoiImages: whole images and the boxes of their objects, for training Faster R-CNN: each image is
// resized until its shorter side has a given length, and comes a second time mirrored.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "data/databases/source.h"
#include "data/loader/dataset.h"
#include "data/transforms/mean_table.h"

namespace crema {

struct RoiOptions {
  // Lengths of the shorter side, of which one is drawn for each sample; the longer one has at most
  // max_size.
  std::vector<int64_t> scales = {600};
  int64_t max_size = 1000;
  std::array<double, 3> mean = {102.9801, 115.9465, 122.7717};  // mean of blue, green and red
  bool flipped = true;                                          // the mirrored images come too
  bool difficult = false;  // objects marked so (in COCO: crowds) count
  // A record without an object cannot be trained on: the next one that has some takes its place.
  bool passes_over_empty = true;
  int64_t classes = 0;  // with the background; a class is below it. 0: any
  // The number that annotations give to the first pixel of a row: 1 in Pascal VOC, 0 in COCO.
  int64_t first_pixel = 1;
};

class RoiImages : public Dataset {
 public:
  RoiImages(std::shared_ptr<const Source> source, RoiOptions options);

  // First all images as they are, then, on request, all mirrored.
  int64_t size() const override { return source_->size() * (options_.flipped ? 2 : 1); }
  std::string describe(const SampleIndex& sample_index) const override;
  std::string how_to_equalize() const override { return "one image is a batch"; }
  void add_facts(WaitingFacts& facts) const override;
  // The labels are (1 + G, 5): height, width and scale of the resized image, 0, 0; then of each
  // object x1, y1, x2, y2 and its class, in pixels of the resized image.
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

  // The largest image there can be.
  Shape largest() const;

 private:
  struct Box {
    double x1, y1, x2, y2;
    int label;
  };
  std::vector<Box> boxes_of(const AnnotatedDatum& record, int64_t width, int64_t height) const;
  bool has_objects(const AnnotatedDatum& record) const;
  void read(int64_t index, AnnotatedDatum& record) const;
  double scale(const SampleIndex& sample_index, const Image& image) const;
  bool is_flipped(const SampleIndex& sample_index) const {
    return sample_index.record_index.index >= source_->size();
  }

  std::shared_ptr<const Source> source_;
  RoiOptions options_;
  MeanTable mean_;
};

}  // namespace crema

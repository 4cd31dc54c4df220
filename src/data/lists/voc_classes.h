// VocClasses: the images of Pascal VOC, of one size, and which of its 20 classes each one shows.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "data/loader/dataset.h"

namespace crema {

// In the order of their numbers.
constexpr std::array<std::string_view, 20> kVocClasses = {
    "aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",      "car",
    "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",    "motorbike",
    "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor"};

class VocClasses : public Dataset {
 public:
  // `root`: the folder with JPEGImages, Annotations and ImageSets/Main/SPLIT.txt. Images are resized to
  // height x width (data/transforms/smooth_resize.h). `order`: random numbers of the orders.
  VocClasses(std::string root, const std::string& split, int64_t height, int64_t width,
             const Random& order);

  int64_t size() const override { return static_cast<int64_t>(names_.size()); }
  // The first epoch is in the list's order, each later one in another.
  RecordIndex record_index(int64_t position) const override;
  std::string describe(const SampleIndex& sample_index) const override;
  std::string how_to_equalize() const override { return "they are resized to one"; }
  void add_facts(WaitingFacts& facts) const override;
  // The data are (3, height, width): blue, green, red, minus 128, mirrored at random. The labels
  // are (20): 1 for each class of an object, otherwise 0.
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

 private:
  const std::string& name(const SampleIndex& sample_index) const {
    return names_[static_cast<size_t>(sample_index.record_index.index)];
  }

  std::string root_, list_;
  std::vector<std::string> names_;
  int64_t height_, width_;
  Random order_;
};

}  // namespace crema

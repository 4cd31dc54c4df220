// FieldImages: images with boxes, and for each of several sizes of boxes a map that says which
// object each position of the image shows, as MS-CNN trains on them.
//
// The list has for each image
//   # INDEX
//   PATH
//   CHANNELS HEIGHT WIDTH
//   COUNT                       of the objects that follow
//   CLASS IGNORE X1 Y1 X2 Y2
//   COUNT                       of the unannotated regions that follow
//   X1 Y1 X2 Y2
#pragma once

#include "data/lists/image_files.h"
#include "data/lists/word_reader.h"
#include "data/transforms/regions.h"

namespace crema {

struct FieldObject {
  Region box;  // in pixels
  int label = 0;
  bool ignored = false;
};

struct FieldImage {
  int64_t line = 0;  // of the path
  std::string path;
  int64_t height = 0, width = 0;
  std::vector<FieldObject> objects;
  std::vector<Region> unseen;
};

std::vector<FieldImage> read_field_list(const std::string& path);

class FieldImages : public Dataset {
 public:
  static constexpr int kChannels = 6;  // per map: class, centre, size and overlap
  static constexpr int kNumbers = 7;   // per object: image in the batch, box, class, ignore

  // reading.height and width: the size to which images are resized.
  FieldImages(std::string path, ImageReading reading, const ImageGtDataParameter& parameter,
              const TransformationParameter& transform);

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  std::string describe(const SampleIndex& sample_index) const override;
  std::string how_to_equalize() const override;
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  // The labels of a sample: its maps, concatenated; its number of objects; then as many objects as
  // any image has.
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

  const std::vector<Shape>& maps() const { return maps_; }
  int64_t max_objects() const { return max_objects_; }

 private:
  struct Scene;
  struct Best;
  void read(const FieldImage& listed, Scene& scene) const;
  void zoom(Scene& scene, const FieldObject& chosen, Rng& rng) const;
  void cut_before_zoom(Scene& scene) const;
  void place_in_sample(Scene& scene, Rng& rng) const;
  void write_map(const Scene& scene, int map, std::vector<Best>& best, float* to) const;
  void write_missed(const Scene& scene, const std::vector<Best>& best,
                    std::vector<float>& labels) const;

  std::string path_;
  std::vector<FieldImage> images_;
  ImageReading reading_;
  ImageGtDataParameter parameter_;
  std::vector<float> means_;
  bool mirror_;
  int64_t height_, width_;  // of a sample
  std::vector<Shape> maps_;
  int64_t map_numbers_ = 0, max_objects_ = 0;
};

}  // namespace crema

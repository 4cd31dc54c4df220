// AnnotatedRecords: images with boxes around objects, from a database of AnnotatedDatum messages
// (SSD). The labels follow every change to the images.
#pragma once

#include <memory>

#include "data/databases/source.h"
#include "data/loader/dataset.h"
#include "data/loader/image_cache.h"
#include "data/transforms/regions.h"
#include "data/transforms/transform.h"

namespace crema {

class AnnotatedRecords : public Dataset {
 public:
  // Reads the first record.
  AnnotatedRecords(std::shared_ptr<const Source> source, Transform transform,
                   const TransformationParameter& fields, const AnnotatedDataParameter& parameter);

  void use_cache(std::unique_ptr<ImageCache> cache) { cache_ = std::move(cache); }

  int64_t size() const override { return source_->size(); }
  RecordIndex record_index(int64_t position) const override {
    return source_->record_index(position);
  }
  std::string describe(const SampleIndex& sample_index) const override {
    return source_->describe(sample_index.record_index.index);
  }
  std::string how_to_equalize() const override;
  // True unless the records say that their labels are scalars.
  bool labels_vary() const override { return boxes_; }
  // Rows of item in the batch, class, instance, xmin, ymin, xmax, ymax, difficult; a row of -1 when
  // there is no object at all.
  Shape joined_label_shape(std::vector<float>& labels) const override;
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

 private:
  void read(int64_t index, AnnotatedDatum& record) const;
  bool has_boxes(const AnnotatedDatum& record) const;
  // Sets record.image; returns its objects.
  std::vector<Object> open(int64_t index, Record& record) const;
  // A mosaic of the image and three others.
  void join(const AugmentMosaic& mosaic, Rng& rng, Image& image,
            std::vector<Object>& objects) const;

  std::shared_ptr<const Source> source_;
  Transform transform_;
  AnnotatedDataParameter parameter_;
  std::unique_ptr<EmitConstraint> constraint_;  // null: none
  std::unique_ptr<ImageCache> cache_;           // null: none
  bool boxes_ = false;
};

}  // namespace crema

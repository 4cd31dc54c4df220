// AnnotatedRecords: images with boxes around objects, from a database of AnnotatedDatum messages
// (SSD), with labels that follow whatever is done to the images.
#pragma once

#include <memory>

#include "data/databases/source.h"
#include "data/loader/samples.h"
#include "data/transforms/regions.h"
#include "data/transforms/transform.h"

namespace crema {

class AnnotatedRecords : public Samples {
 public:
  // Reads the first record.
  AnnotatedRecords(std::shared_ptr<const Source> source, Transform transform,
                   const TransformationParameter& fields, const AnnotatedDataParameter& parameter);

  int64_t size() const override { return source_->size(); }
  Place place(int64_t position) const override { return source_->place(position); }
  std::string describe(const Turn& turn) const override {
    return source_->describe(turn.place.index);
  }
  std::string how_to_equalize() const override;
  // Unless the records say that their labels are single numbers.
  bool labels_vary() const override { return boxes_; }
  // Rows of item in the batch, class, instance, xmin, ymin, xmax, ymax, difficult; a row of -1
  // where there is no object at all.
  Shape joined(std::vector<float>& labels) const override;
  void load(const Turn& turn, Sample& sample) const override;
  void write(const Turn& turn, Sample& sample, float* data) const override;

 private:
  void read(int64_t index, AnnotatedDatum& record) const;
  bool has_boxes(const AnnotatedDatum& record) const;

  std::shared_ptr<const Source> source_;
  Transform transform_;
  AnnotatedDataParameter parameter_;
  std::unique_ptr<EmitConstraint> constraint_;  // null: none
  bool boxes_ = false;
};

}  // namespace crema

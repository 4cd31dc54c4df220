// RowDataset: samples that are rows of real numbers, not records of a database. With transform_param
// they are transformed as records are.
#pragma once

#include <memory>

#include "data/loader/dataset.h"
#include "data/transforms/transform.h"

namespace crema {

class RowDataset : public Dataset {
 public:
  // The shape of a row of data, and of its labels. No transform: null. Error when it is not for rows
  // of this shape.
  RowDataset(const Shape& row, Shape label, std::shared_ptr<const Transform> transform);

  std::string how_to_equalize() const override {
    return "give transform_param a crop_size, or set batch_size: 1";
  }
  std::optional<int64_t> class_of(int64_t record) const override;
  bool decodes() const override { return changes_; }
  void add_facts(WaitingFacts& facts) const override;
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

  // The shape of samples, as far as it does not depend on chance.
  Shape shape() const;

 protected:
  // The data of a record, which stay valid as long as the pointer.
  virtual std::shared_ptr<const float[]> row(int64_t record) const = 0;
  virtual void read_labels(int64_t record, std::vector<float>& labels) const = 0;

 private:
  void show_row(const float* values, Record& record) const;

  Shape row_, label_shape_, shape_;  // shape_: of samples, unless changed
  std::shared_ptr<const Transform> transform_;
  bool changes_ = false;  // rows are changed as pictures before they are transformed
};

}  // namespace crema

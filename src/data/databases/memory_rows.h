// MemoryRows: samples that a program handed over.
#pragma once

#include <vector>

#include "base/strings.h"
#include "data/databases/row_dataset.h"

namespace crema {

class MemoryRows : public RowDataset {
 public:
  // A sample has the values of a row and one label.
  MemoryRows(const Shape& row, std::shared_ptr<const Transform> transform,
             std::vector<float> values, std::vector<float> labels)
      : RowDataset(row, Shape(), std::move(transform)),
        each_(row.count()),
        values_(std::move(values)),
        labels_(std::move(labels)) {}

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  std::string describe(const SampleIndex& sample_index) const override {
    return cat("sample ", sample_index.record_index.index, " of those handed over");
  }

 protected:
  std::shared_ptr<const float[]> row(int64_t record) const override {
    // Owns nothing: the values must outlive this.
    return {std::shared_ptr<const float[]>(), values_.data() + record * each_};
  }
  void read_labels(int64_t record, std::vector<float>& labels) const override {
    labels.assign(1, labels_[static_cast<size_t>(record)]);
  }

 private:
  int64_t each_;
  std::vector<float> values_, labels_;
};

}  // namespace crema

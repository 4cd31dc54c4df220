// SparseRecords: the sparse vectors of a database of SparseDatum messages, as dense vectors.
#pragma once

#include <memory>

#include "data/databases/source.h"
#include "data/loader/dataset.h"

namespace crema {

class SparseRecords : public Dataset {
 public:
  // Reads the first record; all must have its length.
  explicit SparseRecords(std::shared_ptr<const Source> source);

  int64_t size() const override { return source_->size(); }
  RecordIndex record_index(int64_t position) const override {
    return source_->record_index(position);
  }
  std::string describe(const SampleIndex& sample_index) const override {
    return source_->describe(sample_index.record_index.index);
  }
  std::string how_to_equalize() const override { return "write all records with one `size`"; }
  bool decodes() const override { return false; }
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

 private:
  std::shared_ptr<const Source> source_;
  int64_t length_ = 0;
};

}  // namespace crema

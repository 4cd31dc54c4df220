// Records: the samples of a database, transformed by transform_param.
#pragma once

#include <memory>

#include "data/databases/source.h"
#include "data/loader/dataset.h"
#include "data/loader/image_cache.h"
#include "data/transforms/transform.h"

namespace crema {

class Records : public Dataset {
 public:
  // Reads the first record. labelled: a layer reads the labels, so a blob must be able to represent
  // them.
  Records(std::shared_ptr<const Source> source, Transform transform, bool labelled = true);

  int64_t size() const override { return source_->size(); }
  RecordIndex record_index(int64_t position) const override {
    return source_->record_index(position);
  }
  std::string describe(const SampleIndex& sample_index) const override {
    return source_->describe(sample_index.record_index.index);
  }
  std::string how_to_equalize() const override;
  std::optional<int64_t> class_of(int64_t record) const override {
    return source_->class_of(record);
  }
  bool decodes() const override {
    return encoded_ || transform_.changes().any() || transform_.changes().mixes();
  }
  void add_facts(WaitingFacts& facts) const override;
  void load(const SampleIndex& sample_index, Sample& sample) const override;
  void write(const SampleIndex& sample_index, Sample& sample, float* data) const override;

  // For encoded records; others are read as fast as a cache would provide them.
  void use_cache(std::unique_ptr<ImageCache> cache) { cache_ = std::move(cache); }
  bool encoded() const { return encoded_; }

  const Source& source() const { return *source_; }
  const Transform& transform() const { return transform_; }
  // Sets the sample's labels from its record.
  void set_labels(Sample& sample) const;
  // The label of a record without Datum.labels, as in a blob. Error gives only the reason.
  float label_of(const Record& record) const;

 private:
  // Reads and decodes, or shows the cached image.
  void open(const SampleIndex& sample_index, Record& record, Laps& laps) const;

  std::shared_ptr<const Source> source_;
  std::unique_ptr<ImageCache> cache_;  // null: none
  Transform transform_;
  bool labelled_;
  bool encoded_ = false;  // the first record has an image file, not plain values
};

}  // namespace crema

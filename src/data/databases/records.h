// Records: the samples of a database, as transform_param makes them.
#pragma once

#include <memory>

#include "data/databases/source.h"
#include "data/loader/samples.h"
#include "data/transforms/transform.h"

namespace crema {

class Records : public Samples {
 public:
  // Reads the first record. labelled: somebody reads the labels, which must be ones that a blob can
  // hold then.
  Records(std::shared_ptr<const Source> source, Transform transform, bool labelled = true);

  int64_t size() const override { return source_->size(); }
  Place place(int64_t position) const override { return source_->place(position); }
  std::string describe(const Turn& turn) const override {
    return source_->describe(turn.place.index);
  }
  std::string how_to_equalize() const override;
  bool decodes() const override { return encoded_; }
  void load(const Turn& turn, Sample& sample) const override;
  void write(const Turn& turn, Sample& sample, float* data) const override;

  const Source& source() const { return *source_; }
  const Transform& transform() const { return transform_; }
  // As a blob has it. Error gives only the reason.
  float label_of(const Record& record) const;

 private:
  std::shared_ptr<const Source> source_;
  Transform transform_;
  bool labelled_;
  bool encoded_ = false;  // the first record holds an image file, not plain values
};

}  // namespace crema

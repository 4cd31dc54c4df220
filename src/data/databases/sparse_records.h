// SparseRecords: the sparse vectors of a database of SparseDatum messages, with all their zeros.
#pragma once

#include <memory>

#include "data/databases/source.h"
#include "data/loader/samples.h"

namespace crema {

class SparseRecords : public Samples {
 public:
  // Reads the first record, whose length is that of all.
  explicit SparseRecords(std::shared_ptr<const Source> source);

  int64_t size() const override { return source_->size(); }
  Place place(int64_t position) const override { return source_->place(position); }
  std::string describe(const Turn& turn) const override {
    return source_->describe(turn.place.index);
  }
  std::string how_to_equalize() const override { return "write all records with one `size`"; }
  bool decodes() const override { return false; }
  void load(const Turn& turn, Sample& sample) const override;
  void write(const Turn& turn, Sample& sample, float* data) const override;

 private:
  std::shared_ptr<const Source> source_;
  int64_t length_ = 0;
};

}  // namespace crema

// Hdf5Dataset: the rows of HDF5 files as samples. The first dataset is the data; the values of all
// others, one after the other, are the labels.
#pragma once

#include <optional>

#include "data/databases/hdf5/hdf5_source.h"
#include "data/databases/row_dataset.h"

namespace crema {

class Hdf5Dataset : public RowDataset {
 public:
  Hdf5Dataset(std::shared_ptr<const Hdf5Source> source, std::shared_ptr<const Transform> transform);

  int64_t size() const override { return source_->rows(); }
  int64_t shuffled(int64_t index, const Random& of_epoch) const override {
    return source_->shuffled(index, of_epoch);
  }
  std::string describe(const SampleIndex& sample_index) const override;
  // The number that the second of two datasets has for the row.
  std::optional<int64_t> class_of(int64_t record) const override;

 protected:
  std::shared_ptr<const float[]> row(int64_t record) const override { return at(record, 0); }
  void read_labels(int64_t record, std::vector<float>& labels) const override;

 private:
  Hdf5Blocks::Values at(int64_t record, int dataset) const;

  std::shared_ptr<const Hdf5Source> source_;
};

}  // namespace crema

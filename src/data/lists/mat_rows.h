// MatRows: samples that are arrays in MATLAB's files, one file for each array of a sample, as MatWrite
// writes them for one image.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/strings.h"
#include "data/databases/row_dataset.h"

namespace crema {

// Location of a sample's array.
using FindMat = std::function<std::string(int64_t sample, size_t array)>;

// Channels, height and width of an array "data" in a file; Error names it.
Shape shape_of_mat(const std::string& path);

class MatRows : public RowDataset {
 public:
  // `shapes`: of each array of the first sample, which all samples must have. The first array is the
  // data of a sample, the others one after another its labels.
  MatRows(int64_t samples, std::vector<Shape> shapes, FindMat find);

  int64_t size() const override { return samples_; }
  std::string describe(const SampleIndex& sample_index) const override {
    return cat("sample ", sample_index.record_index.index + 1);
  }

 protected:
  std::shared_ptr<const float[]> row(int64_t record) const override;
  void read_labels(int64_t record, std::vector<float>& labels) const override;

 private:
  // Reads the values of an array, in the order of a blob.
  void read(int64_t sample, size_t array, float* to) const;

  int64_t samples_;
  std::vector<Shape> shapes_;
  FindMat find_;
};

}  // namespace crema

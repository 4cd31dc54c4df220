// Hdf5Source: the rows of a list of HDF5 files as one table. Every file has the same datasets; row
// r of each of them belongs together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "tensor/shape.h"

namespace crema {

class Hdf5Source {
 public:
  struct Row {
    int64_t epoch = 0;
    int file = 0;
    int64_t row = 0;
  };

  // `list` is a text file that names one .h5 file per line, or such a file itself, `names` the
  // wanted datasets. Opens every file at once, so that a bad one is found now and not hours later.
  Hdf5Source(const std::string& list, std::vector<std::string> names);

  int files() const { return static_cast<int>(paths_.size()); }
  int64_t rows() const { return rows_; }
  // Shape of a row of one dataset: its axes without the first.
  const Shape& row_shape(int dataset) const { return row_shapes_[dataset]; }

  // Row `position` of the endless traversal: file after file or, shuffled, with the files and the
  // rows inside each in a new order in every epoch.
  Row locate(int64_t position, bool shuffle, const Random& random);
  // The values of a row and of those after it in its file. Reads the file when it is not in memory:
  // valid until the next call.
  const float* at(const Row& row, int dataset);

 private:
  using Datasets = std::vector<std::vector<float>>;
  void order_files(int64_t epoch, bool shuffle, const Random& random);

  std::vector<std::string> names_, paths_;
  std::vector<int64_t> file_rows_;
  std::vector<Shape> row_shapes_;
  int64_t rows_ = 0;
  int64_t ordered_epoch_ = -1;   // of order_ and starts_
  std::vector<int> order_;       // the files
  std::vector<int64_t> starts_;  // the row of the epoch with which each begins
  std::map<int, Datasets> loaded_;
  int64_t loaded_values_ = 0;
};

}  // namespace crema

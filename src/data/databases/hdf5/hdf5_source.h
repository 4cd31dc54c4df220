// Hdf5Source: the rows of a list of HDF5 files as one table. Every file has the same datasets; row
// r of each of them belongs together. Threads may share it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/databases/hdf5/hdf5_blocks.h"

namespace crema {

class Hdf5Source {
 public:
  // The cache limit: 1 GiB.
  static constexpr int64_t kMostValues = int64_t{1} << 28;

  struct Row {
    int file = 0;
    int64_t row = 0;
  };

  // `list` is a text file that names one .h5 file per line, or such a file itself, `names` the
  // requested datasets. Opens every file immediately, so that a bad one is found now and not hours
  // later.
  Hdf5Source(const std::string& list, const std::vector<std::string>& names,
             int64_t most_values = kMostValues);

  int files() const { return static_cast<int>(blocks_.files().size()); }
  const std::string& path(int file) const { return blocks_.files()[file].path; }
  int64_t rows() const { return rows_; }
  int datasets() const { return static_cast<int>(blocks_.sets().size()); }
  // Shape of a row of one dataset: its axes without the first.
  const Shape& row_shape(int dataset) const { return blocks_.sets()[dataset].row; }

  // Row `index` of all files, one file after the other.
  Row locate(int64_t index) const;
  // The index of the row at position `index` of an epoch in random order: files in random order,
  // and the rows inside each. Rows of a file that does not fit into memory are permuted in windows
  // of blocks (BlockOrder), so that a block is read once per epoch.
  int64_t shuffled(int64_t index, const Random& of_epoch) const;
  // The values of a row. Reads the file when they are not in memory.
  Hdf5Blocks::Values at(const Row& row, int dataset) const {
    return blocks_.at(row.file, row.row, dataset);
  }

  int64_t values_in_memory() const { return blocks_.values_in_memory(); }

 private:
  // Where the files begin in an epoch.
  struct Order {
    Random of_epoch;
    std::vector<int> files;
    std::vector<int64_t> begins;
  };
  void add_file(const std::string& path, const std::vector<std::string>& names);
  std::shared_ptr<const Order> order_of(const Random& epoch) const;

  const int64_t most_values_;
  Hdf5Blocks blocks_;
  std::vector<int64_t> begins_, read_rows_;  // the first row of each file, the rows read together
  int64_t rows_ = 0;
  int64_t values_of_row_ = 0;  // of all datasets
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Order> order_;  // order of the last requested epoch
};

}  // namespace crema

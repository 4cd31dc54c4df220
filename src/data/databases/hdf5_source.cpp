#include "data/databases/hdf5_source.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/hdf5_file.h"
#include "data/loader/permutation.h"

namespace crema {
namespace {

// Files stay in memory while all of them together have at most this many values (1 GiB); above it
// only one does.
constexpr int64_t kept_values = int64_t{1} << 28;

// Integers, such as labels, must not change when they become float32 in blobs.
void check_exact(const Hdf5File& file, const std::string& path, const std::string& name,
                 const std::vector<float>& values) {
  constexpr float kExact = 1 << 24;  // from here on some integers are rounded
  const auto may_be_rounded = [](float value) { return std::abs(value) >= kExact; };
  if (!file.wide_integers(name) || std::none_of(values.begin(), values.end(), may_be_rounded))
    return;
  const std::vector<double> integers = file.doubles(name);
  for (size_t i = 0; i < values.size(); ++i) {
    if (static_cast<double>(values[i]) != integers[i]) {
      char digits[32];
      std::snprintf(digits, sizeof(digits), "%.0f", integers[i]);
      fail(path, ": dataset \"", name, "\" holds the integer ", digits,
           ", but blobs are float32, which holds every integer up to ", 1 << 24,
           " but not this one; store the dataset as floats where rounding is meant");
    }
  }
}

}  // namespace

Hdf5Source::Hdf5Source(const std::string& list, std::vector<std::string> names)
    : names_(std::move(names)) {
  if (is_hdf5(list)) {
    paths_.push_back(list);
  } else {
    for (const std::string& line : split(read_text(list), '\n')) {
      const std::string_view entry = trim(line);
      if (!entry.empty()) paths_.push_back(find_file(std::string(entry), folder_of(list)));
    }
  }
  require(!paths_.empty(), list, ": names no HDF5 file; it should name one a line");
  for (const std::string& path : paths_) {
    const Hdf5File file(path);
    int64_t rows = -1;
    for (size_t i = 0; i < names_.size(); ++i) {
      const Shape shape = file.shape(names_[i]);
      require(shape.axes() >= 1, path, ": dataset \"", names_[i],
              "\" is a single number; its first axis should count rows");
      if (rows < 0) rows = shape[0];
      require(shape[0] == rows, path, ": dataset \"", names_[i], "\" has ", shape[0],
              " rows, but \"", names_[0], "\" has ", rows);
      const Shape row(std::vector<int64_t>(shape.dims().begin() + 1, shape.dims().end()));
      if (row_shapes_.size() == i) row_shapes_.push_back(row);
      require(row == row_shapes_[i], path, ": a row of dataset \"", names_[i], "\" is ",
              row.brief(), ", but in ", paths_[0], " it is ", row_shapes_[i].brief());
    }
    file_rows_.push_back(std::max<int64_t>(0, rows));
    rows_ += file_rows_.back();
  }
  require(rows_ > 0, list, ": the HDF5 files have no rows");
}

void Hdf5Source::order_files(int64_t epoch, bool shuffle, const Random& random) {
  if (ordered_epoch_ == epoch) return;
  const Permutation order(files(), random);
  order_.clear();
  starts_.clear();
  int64_t start = 0;
  for (int turn = 0; turn < files(); ++turn) {
    order_.push_back(shuffle ? static_cast<int>(order(turn)) : turn);
    starts_.push_back(start);
    start += file_rows_[order_.back()];
  }
  ordered_epoch_ = epoch;
}

Hdf5Source::Row Hdf5Source::locate(int64_t position, bool shuffle, const Random& random) {
  Row row;
  row.epoch = position / rows_;
  const Random epoch{random.seed, mix(random.stream, static_cast<uint64_t>(row.epoch))};
  order_files(row.epoch, shuffle, epoch);
  const int64_t in_epoch = position % rows_;
  const auto turn =
      std::upper_bound(starts_.begin(), starts_.end(), in_epoch) - starts_.begin() - 1;
  row.file = order_[turn];
  row.row = in_epoch - starts_[turn];
  if (shuffle) {
    const Random rows{epoch.seed, mix(epoch.stream, static_cast<uint64_t>(row.file) + 1)};
    row.row = Permutation(file_rows_[row.file], rows)(row.row);
  }
  return row;
}

const float* Hdf5Source::at(const Row& row, int dataset) {
  auto found = loaded_.find(row.file);
  if (found == loaded_.end()) {
    int64_t values = 0;
    for (const Shape& shape : row_shapes_) values += file_rows_[row.file] * shape.count();
    if (loaded_values_ + values > kept_values) {
      loaded_.clear();
      loaded_values_ = 0;
    }
    const Hdf5File file(paths_[row.file]);
    Datasets datasets;
    for (size_t i = 0; i < names_.size(); ++i) {
      datasets.push_back(file.floats(names_[i]));
      check_exact(file, paths_[row.file], names_[i], datasets[i]);
      require(
          static_cast<int64_t>(datasets[i].size()) == file_rows_[row.file] * row_shapes_[i].count(),
          paths_[row.file], ": dataset \"", names_[i], "\" has changed while it was used");
    }
    found = loaded_.emplace(row.file, std::move(datasets)).first;
    loaded_values_ += values;
  }
  return found->second[dataset].data() + row.row * row_shapes_[dataset].count();
}

}  // namespace crema

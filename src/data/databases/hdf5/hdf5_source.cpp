#include "data/databases/hdf5/hdf5_source.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "data/databases/given_file.h"
#include "data/loader/block_order.h"

namespace crema {
namespace {

// A block: enough for a disk, and at least this many are in memory.
constexpr int64_t kBlockValues = int64_t{1} << 20;
constexpr int64_t kLeastBlocks = 16;
// A shuffling window is this fraction of the cached rows: the next one is read in parallel.
constexpr int64_t kWindows = 4;

// How many rows of a file are read together: whole chunks, unless these are too large.
int64_t rows_of_block(int64_t rows, int64_t values_of_row, int64_t chunk, int64_t most_values) {
  const int64_t values = std::min(kBlockValues, most_values / kLeastBlocks);
  const int64_t wanted = std::clamp<int64_t>(values / values_of_row, 1, std::max<int64_t>(1, rows));
  if (chunk == 0 || chunk > most_values / kWindows / values_of_row) return wanted;
  return std::max<int64_t>(1, wanted / chunk) * chunk;
}

}  // namespace

Hdf5Source::Hdf5Source(const std::string& list, const std::vector<std::string>& names,
                       int64_t most_values)
    : most_values_(most_values), blocks_(most_values) {
  if (is_hdf5(list)) {
    add_file(list, names);
  } else {
    const FileKind kind = kind_of(list);
    require(may_be_list(kind), list, ": is not a list of HDF5 files, one a line", what_it_is(kind));
    for (const std::string& line : split(read_text(list), '\n')) {
      const std::string_view entry = trim(line);
      if (entry.empty()) continue;
      const std::string path = find_file(std::string(entry), folder_of(list));
      require(file_exists(path) || entry.find(' ') == std::string::npos, list, ": `", entry,
              "` is no HDF5 file", what_it_is(kind));
      add_file(path, names);
    }
  }
  require(files() > 0, list, ": names no HDF5 file; it should name one a line");
  require(rows_ > 0, list, ": the HDF5 files have no rows");
}

void Hdf5Source::add_file(const std::string& path, const std::vector<std::string>& names) {
  const Hdf5File file(path);
  const bool first = files() == 0;
  int64_t rows = -1, chunk = 0;
  Shape largest;  // row shape of the dataset that determines the block size
  for (size_t i = 0; i < names.size(); ++i) {
    const Shape shape = file.shape(names[i]);
    require(shape.axes() >= 1, path, ": dataset \"", names[i],
            "\" is a single number; its first axis should count rows");
    if (rows < 0) rows = shape[0];
    require(shape[0] == rows, path, ": dataset \"", names[i], "\" has ", shape[0], " rows, but \"",
            names[0], "\" has ", rows);
    const Shape row(std::vector<int64_t>(shape.dims().begin() + 1, shape.dims().end()));
    if (first) {
      blocks_.add({names[i], row});
      values_of_row_ += row.count();
    }
    require(row == row_shape(static_cast<int>(i)), path, ": a row of dataset \"", names[i],
            "\" is ", row.brief(), ", but in ", first ? path : this->path(0), " it is ",
            row_shape(static_cast<int>(i)).brief());
    if (i > 0 && row.count() <= largest.count()) continue;
    largest = row;
    chunk = file.rows_in_chunk(names[i]);
  }
  rows = std::max<int64_t>(0, rows);
  read_rows_.push_back(
      rows_of_block(rows, std::max<int64_t>(1, values_of_row_), chunk, most_values_));
  // A dataset that is small compared with the others, such as labels, is read as a whole: its
  // chunks have different borders.
  const int64_t small = most_values_ / kLeastBlocks / static_cast<int64_t>(names.size());
  std::vector<int64_t> block_rows;
  for (size_t i = 0; i < names.size(); ++i) {
    const int64_t each = std::max<int64_t>(1, row_shape(static_cast<int>(i)).count());
    block_rows.push_back(rows > 0 && rows <= small / each ? rows : read_rows_.back());
  }
  blocks_.add({path, rows, std::move(block_rows)});
  begins_.push_back(rows_);
  rows_ += rows;
}

Hdf5Source::Row Hdf5Source::locate(int64_t index) const {
  const auto file = std::upper_bound(begins_.begin(), begins_.end(), index) - begins_.begin() - 1;
  return {static_cast<int>(file), index - begins_[file]};
}

std::shared_ptr<const Hdf5Source::Order> Hdf5Source::order_of(const Random& epoch) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (order_ && order_->of_epoch.seed == epoch.seed && order_->of_epoch.stream == epoch.stream)
    return order_;
  auto made = std::make_shared<Order>();
  made->of_epoch = epoch;
  const Permutation order(files(), epoch);
  int64_t begin = 0;
  for (int turn = 0; turn < files(); ++turn) {
    made->files.push_back(static_cast<int>(order(turn)));
    made->begins.push_back(begin);
    begin += blocks_.files()[made->files.back()].rows;
  }
  order_ = made;
  return order_;
}

int64_t Hdf5Source::shuffled(int64_t index, const Random& of_epoch) const {
  const std::shared_ptr<const Order> order = order_of(of_epoch);
  const std::vector<int64_t>& begins = order->begins;
  const auto turn = std::upper_bound(begins.begin(), begins.end(), index) - begins.begin() - 1;
  const int file = order->files[turn];
  const int64_t in_file = index - begins[turn], rows = blocks_.files()[file].rows;
  const Random of_file{of_epoch.seed, mix(of_epoch.stream, static_cast<uint64_t>(file) + 1)};
  const int64_t each = std::max<int64_t>(1, values_of_row_);
  if (rows <= most_values_ / each) return begins_[file] + Permutation(rows, of_file)(in_file);
  const int64_t in_window =
      std::max<int64_t>(1, most_values_ / kWindows / (read_rows_[file] * each));
  return begins_[file] + BlockOrder(rows, read_rows_[file], in_window, of_file)(in_file);
}

}  // namespace crema

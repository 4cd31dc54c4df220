#include "data/databases/hdf5/hdf5_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"

namespace crema {
namespace {

// Opening one means checking its structures.
constexpr size_t kOpenFiles = 4;

// Integers, such as labels, must not change when they become float32 in blobs.
void check_exact(const Hdf5File& file, const std::string& path, const Hdf5Blocks::Set& set,
                 int64_t first, int64_t count, const float* values) {
  constexpr float kExact = 1 << 24;  // from here on some integers are rounded
  const auto may_be_rounded = [](float value) { return std::abs(value) >= kExact; };
  const size_t all = static_cast<size_t>(count * set.row.count());
  if (std::none_of(values, values + all, may_be_rounded)) return;
  const std::vector<double> integers = file.doubles(set.name, first, count);
  for (size_t i = 0; i < all; ++i) {
    if (static_cast<double>(values[i]) != integers[i]) {
      char digits[32];
      std::snprintf(digits, sizeof(digits), "%.0f", integers[i]);
      fail(path, ": dataset \"", set.name, "\" holds the integer ", digits,
           ", but blobs are float32, which holds every integer up to ", 1 << 24,
           " but not this one; store the dataset as floats where rounding is meant");
    }
  }
}

}  // namespace

Hdf5Blocks::Values Hdf5Blocks::find(const Key& key) const {
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  blocks_.splice(blocks_.begin(), blocks_, place->second);
  return place->second->values;
}

// Drops the least recently used blocks until this many values fit.
void Hdf5Blocks::make_room(int64_t values) const {
  while (!blocks_.empty() && values_ + values > most_values_) {
    values_ -= blocks_.back().count;
    places_.erase(blocks_.back().key);
    blocks_.pop_back();
  }
}

Hdf5Blocks::Values Hdf5Blocks::at(int file, int64_t row, int set) const {
  const int64_t each = sets_[set].row.count(), rows = files_[file].block_rows[set];
  const Key key{file, set, row / rows};
  const int64_t first = key.block * rows, count = std::min(rows, files_[file].rows - first);
  const auto row_in = [&](const Values& block) {
    return Values(block, block.get() + (row - first) * each);
  };
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const Values there = find(key)) return row_in(there);
  }
  const std::lock_guard<std::mutex> turn(reading_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // Another thread may have read it meanwhile.
    if (const Values there = find(key)) return row_in(there);
    make_room(count * each);
  }
  const Values block = read(key, first, count);
  const std::lock_guard<std::mutex> lock(mutex_);
  blocks_.push_front({key, block, count * each});
  places_[key] = blocks_.begin();
  values_ += count * each;
  return row_in(block);
}

Hdf5Blocks::Values Hdf5Blocks::read(const Key& key, int64_t first, int64_t count) const {
  const OpenFile& from = open(key.file);
  const Set& set = sets_[key.set];
  const std::string& path = files_[key.file].path;
  std::shared_ptr<float[]> values;
  try {
    values = std::make_shared_for_overwrite<float[]>(static_cast<size_t>(count * set.row.count()));
  } catch (const std::bad_alloc&) {
    fail(path, ": dataset \"", set.name, "\" has rows of ", set.row.brief(),
         " numbers: memory is short");
  }
  from.content->floats(set.name, first, count, values.get());
  if (from.wide[key.set]) check_exact(*from.content, path, set, first, count, values.get());
  return values;
}

const Hdf5Blocks::OpenFile& Hdf5Blocks::open(int file) const {
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [&](const OpenFile& open) { return open.file == file; });
  if (found != open_.end()) {
    std::rotate(open_.begin(), found, found + 1);
    return open_.front();
  }
  const File& of = files_[file];
  OpenFile opened{file, std::make_unique<Hdf5File>(of.path), {}};
  for (const Set& set : sets_) {
    Shape expected{of.rows};
    for (const int64_t extent : set.row.dims()) expected.push_back(extent);
    require(opened.content->shape(set.name) == expected, of.path, ": dataset \"", set.name,
            "\" has changed while it was used");
    opened.wide.push_back(opened.content->wide_integers(set.name));
  }
  if (open_.size() == kOpenFiles) open_.pop_back();
  open_.insert(open_.begin(), std::move(opened));
  return open_.front();
}

int64_t Hdf5Blocks::values_in_memory() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return values_;
}

}  // namespace crema

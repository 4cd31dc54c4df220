#include "data/databases/hdf5/hdf5_dataset.h"

#include <cmath>

#include "base/error.h"

namespace crema {
namespace {

Shape labels_of_row(const Hdf5Source& source) {
  if (source.datasets() == 2) return source.row_shape(1);
  int64_t values = 0;
  for (int i = 1; i < source.datasets(); ++i) values += source.row_shape(i).count();
  return {values};
}

}  // namespace

Hdf5Dataset::Hdf5Dataset(std::shared_ptr<const Hdf5Source> source,
                         std::shared_ptr<const Transform> transform)
    : RowDataset(source->row_shape(0), labels_of_row(*source), std::move(transform)),
      source_(std::move(source)) {}

std::string Hdf5Dataset::describe(const SampleIndex& sample_index) const {
  const Hdf5Source::Row row = source_->locate(sample_index.record_index.index);
  return cat(source_->path(row.file), ", row ", row.row);
}

// The caller adds the place: otherwise the file's name would appear twice.
Hdf5Blocks::Values Hdf5Dataset::at(int64_t record, int dataset) const {
  const Hdf5Source::Row row = source_->locate(record);
  try {
    return source_->at(row, dataset);
  } catch (const Error& problem) {
    const std::string text = problem.what(), place = source_->path(row.file) + ": ";
    fail(starts_with(text, place) ? text.substr(place.size()) : text);
  }
}

std::optional<int64_t> Hdf5Dataset::class_of(int64_t record) const {
  if (source_->datasets() != 2 || source_->row_shape(1).count() != 1) return {};
  const float value = at(record, 1)[0];
  if (value != std::floor(value) || std::abs(value) > 1 << 24) return {};
  return static_cast<int64_t>(value);
}

void Hdf5Dataset::read_labels(int64_t record, std::vector<float>& labels) const {
  labels.clear();
  for (int i = 1; i < source_->datasets(); ++i) {
    const Hdf5Blocks::Values values = at(record, i);
    labels.insert(labels.end(), values.get(), values.get() + source_->row_shape(i).count());
  }
}

}  // namespace crema

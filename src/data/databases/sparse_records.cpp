#include "data/databases/sparse_records.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/databases/exact_label.h"
#include "data/databases/find_database.h"

namespace crema {

SparseRecords::SparseRecords(std::shared_ptr<const Source> source) : source_(std::move(source)) {
  SparseDatum first;
  try {
    source_->read(0, first);
    if (first.size() <= 0) require_records(*source_, RecordKind::sparse);
    require(first.size() > 0, "the record is not a SparseDatum with a `size`");
  } catch (const Error& problem) {
    require_records(*source_, RecordKind::sparse);
    fail(source_->describe(0), ": ", problem.what());
  }
  length_ = first.size();
}

void SparseRecords::load(const SampleIndex& sample_index, Sample& sample) const {
  SparseDatum record;
  source_->read(sample_index.record_index.index, record);
  require(record.size() == length_, "its size is ", record.size(),
          ", but that of the first record ", length_);
  const int given = record.has_nnz() ? record.nnz() : record.data_size();
  require(given >= 0 && given <= record.data_size() && given <= record.indices_size(), "it says ",
          given, " values, but has ", record.data_size(), " values at ", record.indices_size(),
          " indices");
  for (int i = 0; i < given; ++i) {
    const int position = record.indices(i);
    require(position >= 0 && position < length_, "value ", i, " has the index ", position,
            ", but indices are from 0 to ", length_ - 1);
  }
  // Kept sparse: a record may be short and its vector larger than any memory.
  Datum& kept = sample.record.datum;
  kept.mutable_float_data()->Assign(record.data().begin(), record.data().begin() + given);
  kept.mutable_data()->assign(reinterpret_cast<const char*>(record.indices().data()),
                              sizeof(int32_t) * static_cast<size_t>(given));
  sample.labels.assign(1, exact_label(record.label()));
  sample.shape = {length_};
  sample.label_shape = Shape();
}

void SparseRecords::write(const SampleIndex&, Sample& sample, float* data) const {
  std::fill(data, data + length_, 0.f);
  const Datum& kept = sample.record.datum;
  for (int i = 0; i < kept.float_data_size(); ++i) {
    int32_t position;
    std::memcpy(&position, kept.data().data() + sizeof position * static_cast<size_t>(i),
                sizeof position);
    data[position] += kept.float_data(i);
  }
}

}  // namespace crema

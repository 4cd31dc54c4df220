#include "data/databases/records.h"

#include "base/error.h"
#include "data/databases/exact_label.h"

namespace crema {

Records::Records(std::shared_ptr<const Source> source, Transform transform, bool labelled)
    : source_(std::move(source)), transform_(std::move(transform)), labelled_(labelled) {
  Datum first;
  try {
    source_->read(0, first);
  } catch (const Error& problem) {
    fail(source_->describe(0), ": ", problem.what());
  }
  encoded_ = first.encoded();
  if (encoded_) transform_.check_order_of_decoded();
}

std::string Records::how_to_equalize() const {
  return "give transform_param a crop_size, force_color or force_gray, convert the images with "
         "-resize_height and -resize_width, or set batch_size: 1";
}

float Records::label_of(const Record& record) const {
  return labelled_ ? exact_label(record.label) : static_cast<float>(record.label);
}

void Records::load(const SampleIndex& sample_index, Sample& sample) const {
  source_->read(sample_index.record_index.index, sample.record.datum);
  decode(sample.record, transform_.color());
  transform_.augment(sample.record, rng_of(sample_index));
  sample.shape = transform_.output(sample.record.shape());
  const int64_t labels = sample.record.datum.labels_size();
  sample.label_shape = labels > 1 ? Shape{labels} : Shape();
}

void Records::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  transform_.apply(sample.record, sample_index.draw(), data);
  const auto& labels = sample.record.datum.labels();
  if (labels.empty()) {
    sample.labels.assign(1, label_of(sample.record));
  } else {
    sample.labels.assign(labels.begin(), labels.end());
  }
}

}  // namespace crema

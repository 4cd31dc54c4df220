#include "data/databases/records.h"

#include "base/error.h"
#include "data/databases/exact_label.h"
#include "data/databases/find_database.h"

namespace crema {

Records::Records(std::shared_ptr<const Source> source, Transform transform, bool labelled)
    : source_(std::move(source)), transform_(std::move(transform)), labelled_(labelled) {
  Datum first;
  try {
    source_->read(0, first);
  } catch (const Error& problem) {
    require_records(*source_, RecordKind::datum);
    fail(source_->describe(0), ": ", problem.what());
  }
  if (!holds_sample(first)) require_records(*source_, RecordKind::datum);
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

void Records::open(const SampleIndex& sample_index, Record& record, Laps& laps) const {
  const auto [epoch, index] = sample_index.record_index;
  Datum& datum = record.datum;
  if (cache_) {
    cache_->begin_sample(epoch);
    std::string rest;
    if (cache_->find(index, record, rest)) {
      require(datum.ParseFromString(rest), "the cache has lost the record's label");
      record.label = datum.label();
      return;
    }
  }
  source_->read(index, datum);
  laps.end(&SampleTimes::read);
  if (!cache_ || !cache_->grows()) {
    return decode(record, transform_.color(), [&](const ImageExtents& size) {
      return transform_.need(size, sample_index.draw(), rng_of(sample_index));
    });
  }
  // All of the image: the crops of later epochs show other parts.
  decode(record, transform_.color());
  if (!datum.encoded()) return;
  datum.clear_data();
  cache_->keep(index, record.image, datum.SerializeAsString());
}

void Records::add_facts(WaitingFacts& facts) const {
  facts.decodes = encoded_;
  facts.dearest_change =
      transform_.changes().dearest(facts.channels, facts.times.height, facts.times.width);
}

void Records::load(const SampleIndex& sample_index, Sample& sample) const {
  Laps laps(sample.times);
  open(sample_index, sample.record, laps);
  laps.end(&SampleTimes::decode);
  laps.see_image(sample.record.height, sample.record.width);
  transform_.augment(sample.record, rng_of(sample_index));
  laps.end(&SampleTimes::change);
  sample.shape = transform_.output(sample.record.shape());
  const int64_t labels = sample.record.datum.labels_size();
  sample.label_shape = labels > 1 ? Shape{labels} : Shape();
}

void Records::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  transform_.apply(sample.record, sample_index.draw(), data);
  set_labels(sample);
}

void Records::set_labels(Sample& sample) const {
  const auto& labels = sample.record.datum.labels();
  if (labels.empty()) {
    sample.labels.assign(1, label_of(sample.record));
  } else {
    sample.labels.assign(labels.begin(), labels.end());
  }
}

}  // namespace crema

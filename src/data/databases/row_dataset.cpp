#include "data/databases/row_dataset.h"

#include <algorithm>

#include "base/error.h"
#include "data/loader/balance.h"

namespace crema {
namespace {

// A picture of the values of a row. Error when they are no bytes.
void make_picture(const float* values, Record& record) {
  const int64_t plane = record.height * record.width;
  Image& image = record.image;
  image = {record.channels, record.height, record.width, {}};
  image.pixels.resize(static_cast<size_t>(plane * record.channels));
  for (int64_t c = 0; c < record.channels; ++c) {
    for (int64_t i = 0; i < plane; ++i) {
      const float value = values[c * plane + i];
      const auto byte = static_cast<uint8_t>(std::clamp(value, 0.f, 255.f));
      if (value != static_cast<float>(byte)) {
        fail("its data hold the number ", value,
             ", but what transform_param changes (augment, distortion, sizes) are pictures, whose "
             "numbers are 0, 1, ... 255: store them so, and scale them by transform_param");
      }
      image.pixels[static_cast<size_t>(i * record.channels + c)] = byte;
    }
  }
  show_image(record);
}

}  // namespace

RowDataset::RowDataset(const Shape& row, Shape label, std::shared_ptr<const Transform> transform)
    : row_(row), label_shape_(std::move(label)), shape_(row), transform_(std::move(transform)) {
  if (!transform_) return;
  require(row.axes() == 3, "transform_param changes channels, rows and columns, but a sample is ",
          row.axes() == 0 ? "a single number" : row.brief());
  changes_ = transform_->changes().any() || transform_->augmentation().any();
  if (!changes_) shape_ = transform_->output(row);
}

std::optional<int64_t> RowDataset::class_of(int64_t record) const {
  if (label_shape_.count() != 1) return {};
  std::vector<float> labels;
  read_labels(record, labels);
  return class_of_label(labels[0]);
}

Shape RowDataset::shape() const {
  if (!changes_) return shape_;
  Record record;
  const std::vector<float> zeros(static_cast<size_t>(row_.count()));
  show_row(zeros.data(), record);
  make_picture(zeros.data(), record);
  transform_->augment(record, Rng({}));
  return transform_->output(record.shape());
}

void RowDataset::show_row(const float* values, Record& record) const {
  record.channels = row_[0];
  record.height = row_[1];
  record.width = row_[2];
  record.bytes = nullptr;
  record.values = values;
  record.interleaved = false;
  record.part = {0, 0, record.height, record.width};
  record.shrink = 1;
}

void RowDataset::add_facts(WaitingFacts& facts) const {
  if (!changes_) return;
  facts.dearest_change =
      transform_->changes().dearest(facts.channels, facts.times.height, facts.times.width);
}

void RowDataset::load(const SampleIndex& sample_index, Sample& sample) const {
  sample.shape = shape_;
  sample.label_shape = label_shape_;
  if (!changes_) return;
  Laps laps(sample.times);
  const std::shared_ptr<const float[]> values = row(sample_index.record_index.index);
  laps.end(&SampleTimes::read);
  show_row(values.get(), sample.record);
  make_picture(values.get(), sample.record);
  laps.see_image(row_[1], row_[2]);
  transform_->augment(sample.record, rng_of(sample_index));
  laps.end(&SampleTimes::change);
  sample.shape = transform_->output(sample.record.shape());
}

void RowDataset::write(const SampleIndex& sample_index, Sample& sample, float* data) const {
  Laps laps(sample.times);
  read_labels(sample_index.record_index.index, sample.labels);
  if (changes_) return transform_->apply(sample.record, sample_index.draw(), data);
  const std::shared_ptr<const float[]> values = row(sample_index.record_index.index);
  laps.end(&SampleTimes::read);
  if (!transform_) {
    std::copy_n(values.get(), row_.count(), data);
  } else {
    show_row(values.get(), sample.record);
    transform_->apply(sample.record, sample_index.draw(), data);
  }
}

}  // namespace crema

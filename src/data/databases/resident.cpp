#include "data/databases/resident.h"

#include <cstring>

#include "base/error.h"

namespace crema {

std::unique_ptr<ResidentData> ResidentData::load(Context& context, const Records& records,
                                                 const LoaderOptions& options, size_t max_bytes) {
  if (context.device() != Device::gpu || records.decodes() || options.balance) return nullptr;
  const Source& source = records.source();
  const Transform& transform = records.transform();
  if (transform.augmentation().any() || transform.changes().any() || transform.changes().mixes() ||
      transform.numbers().flow)
    return nullptr;
  Record record;
  source.read(0, record.datum);
  decode(record, transform.color());
  std::unique_ptr<ResidentData> data(new ResidentData(context, transform, record.shape()));
  data->records_ = source.size();
  const auto each = static_cast<size_t>(record.shape().count());
  const size_t bytes = each * static_cast<size_t>(data->records_);
  if (!record.bytes || bytes > max_bytes) return nullptr;

  std::vector<uint8_t> all(bytes);
  std::vector<float> labels(static_cast<size_t>(data->records_));
  for (int64_t i = 0; i < data->records_; ++i) {
    try {
      source.read(i, record.datum);
      decode(record, transform.color());
      labels[static_cast<size_t>(i)] = records.label_of(record);
    } catch (const Error&) {
      return nullptr;  // the loader names the record when it gets there
    }
    if (!record.bytes || record.interleaved || record.shape() != data->record_) return nullptr;
    if (record.datum.labels_size() > 0) return nullptr;
    std::memcpy(all.data() + static_cast<size_t>(i) * each, record.bytes, each);
  }
  data->options_ = options;
  const auto to_gpu = [&](const void* from, size_t count, DType dtype) {
    const Tensor tensor(context, Shape{static_cast<int64_t>(count)}, dtype);
    copy_bytes(context, tensor.raw(), Device::gpu, from, Device::cpu, tensor.bytes());
    return tensor;
  };
  data->bytes_ = to_gpu(all.data(), all.size(), DType::u8);
  data->labels_ = to_gpu(labels.data(), labels.size(), DType::f32);
  return data;
}

int64_t ResidentData::batches() const {
  return options_.whole_epochs ? batches_in_epoch(records_, options_.batch_size) : 0;
}

int64_t ResidentData::epoch(uint64_t pass) const {
  if (options_.whole_epochs) return static_cast<int64_t>(pass) / batches();
  const int64_t first = static_cast<int64_t>(pass) * options_.traversed();
  return (options_.skip + options_.first_in_batch + first + options_.batch_size - 1) / records_;
}

void ResidentData::batch(Context& context, uint64_t pass, const uint64_t* live_pass,
                         const Tensor& data, const Tensor& labels) const {
  const LoaderOptions& o = options_;
  const AllRecords all{bytes_.data<uint8_t>(),
                       labels_.data<float>(),
                       records_,
                       record_[1],
                       record_[2],
                       o.traversed(),
                       o.skip + o.first_in_batch,
                       batches(),
                       o.shuffle,
                       o.random,
                       pass,
                       live_pass,
                       labels.data<float>()};
  transform_.make(context, all, data);
}

}  // namespace crema

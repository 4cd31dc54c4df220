#include "data/resident.h"

#include <cstring>

#include "base/error.h"
#include "data/permutation.h"
#include "device/parallel.h"

namespace crema {
namespace {

// Everything that a batch is made of.
struct BatchParts {
  const uint8_t* bytes;
  const float *labels, *mean;
  int64_t mean_count, records, channels, height, width;  // of a record
  int64_t batch_size, skip, rank, ranks;
  bool shuffle;
  Random random;
  TransformNumbers transform;
  uint64_t pass;
  const uint64_t* live_pass;
  int64_t out_height, out_width;
  float *data, *label;
};

#ifdef __CUDACC__

// A block for each sample.
__global__ void make_samples(BatchParts s) {
  __shared__ int64_t index;
  __shared__ Cut cut;
  const int64_t sample = blockIdx.x;
  if (threadIdx.x == 0) {
    const auto pass = static_cast<int64_t>(s.live_pass ? *s.live_pass : s.pass);
    const int64_t turn = s.skip + (pass * s.batch_size + sample) * s.ranks + s.rank;
    const int64_t place = turn % s.records;
    const Random epoch{s.random.seed,
                       mix(s.random.stream, static_cast<uint64_t>(turn / s.records))};
    index = s.shuffle ? Permutation(s.records, epoch)(place) : place;
    const Random draws{epoch.seed, mix(epoch.stream, 1)};
    cut = s.transform.cut(s.height, s.width, draws.four(static_cast<uint64_t>(index)));
    if (s.label) s.label[sample] = s.labels[index];
  }
  __syncthreads();
  const int plane = static_cast<int>(s.height * s.width), columns = static_cast<int>(s.out_width);
  const int out_plane = static_cast<int>(s.out_height) * columns;
  const int count = static_cast<int>(s.channels) * out_plane;
  const uint8_t* const from = s.bytes + index * s.channels * plane;
  float* const to = s.data + sample * count;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) {
    const int channel = i / out_plane, in_plane = i - channel * out_plane;
    const int y = in_plane / columns, x = in_plane - y * columns;
    const int column = static_cast<int>(cut.left) + (cut.mirror ? columns - 1 - x : x);
    const int at = channel * plane + static_cast<int>((cut.top + y) * s.width) + column;
    float value = from[at];
    if (s.mean_count > s.channels) {
      value -= s.mean[at];
    } else if (s.mean_count > 0) {
      value -= s.mean[s.mean_count == 1 ? 0 : channel];
    }
    to[i] = value * s.transform.scale;
  }
}

#endif

}  // namespace

std::unique_ptr<ResidentData> ResidentData::load(Context& context, const Records& records,
                                                 const LoaderOptions& options, size_t most_bytes) {
  if (context.device() != Device::gpu || records.decodes()) return nullptr;
  const Source& source = records.source();
  const Transform& transform = records.transform();
  if (transform.augmentation().any() || transform.numbers().flow) return nullptr;
  Record record;
  source.read(0, record.datum);
  decode(record, transform.color());
  auto data = std::make_unique<ResidentData>();
  data->record_ = record.shape();
  data->records_ = source.size();
  const auto each = static_cast<size_t>(record.shape().count());
  const size_t bytes = each * static_cast<size_t>(data->records_);
  if (!record.bytes || bytes > most_bytes) return nullptr;

  std::vector<uint8_t> all(bytes);
  std::vector<float> labels(static_cast<size_t>(data->records_));
  for (int64_t i = 0; i < data->records_; ++i) {
    try {
      source.read(i, record.datum);
      decode(record, transform.color());
    } catch (const Error&) {
      return nullptr;  // the loader names the record when its turn comes
    }
    if (!record.bytes || record.interleaved || record.shape() != data->record_) return nullptr;
    std::memcpy(all.data() + static_cast<size_t>(i) * each, record.bytes, each);
    labels[static_cast<size_t>(i)] = static_cast<float>(record.label);
  }
  data->options_ = options;
  data->transform_ = transform.numbers();
  const auto to_gpu = [&](const void* from, size_t count, DType dtype) {
    const Tensor tensor(context, Shape{static_cast<int64_t>(count)}, dtype);
    copy_bytes(context, tensor.raw(), Device::gpu, from, Device::cpu, tensor.bytes());
    return tensor;
  };
  data->bytes_ = to_gpu(all.data(), all.size(), DType::u8);
  data->labels_ = to_gpu(labels.data(), labels.size(), DType::f32);
  const std::vector<float>& image = transform.mean_image();
  const std::vector<float>& mean = image.empty() ? transform.mean_values() : image;
  data->mean_count_ = static_cast<int64_t>(mean.size());
  if (!mean.empty()) data->mean_ = to_gpu(mean.data(), mean.size(), DType::f32);
  return data;
}

int64_t ResidentData::epoch(uint64_t pass) const {
  const int64_t last = (static_cast<int64_t>(pass) + 1) * options_.batch_size - 1;
  return (options_.skip + last * options_.ranks + options_.rank) / records_;
}

void ResidentData::batch(Context& context, uint64_t pass, const uint64_t* live_pass,
                         const Tensor& data, const Tensor& labels) const {
#ifdef __CUDACC__
  const Shape& out = data.shape();
  const BatchParts s{bytes_.data<uint8_t>(),
                     labels_.data<float>(),
                     mean_.data<float>(),
                     mean_count_,
                     records_,
                     record_[0],
                     record_[1],
                     record_[2],
                     options_.batch_size,
                     options_.skip,
                     options_.rank,
                     options_.ranks,
                     options_.shuffle,
                     options_.random,
                     transform_,
                     pass,
                     live_pass,
                     out[2],
                     out[3],
                     data.data<float>(),
                     labels.data<float>()};
  launch(context.gpu(), make_samples, {static_cast<unsigned>(options_.batch_size), 256}, s);
#else
  (void)context, (void)pass, (void)live_pass, (void)data, (void)labels;
#endif
}

}  // namespace crema

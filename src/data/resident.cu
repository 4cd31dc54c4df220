#include "data/resident.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/permutation.h"
#include "device/parallel.h"
#include "tensor/on.h"

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
  int pixel;  // channels-last: values from one pixel to the next, zeros behind the last channel
  float* label;
};

#ifdef __CUDACC__

// A block for each sample, a thread for each of its pixels.
template <typename T>
__global__ void make_samples(BatchParts s, T* data) {
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
  const int channels = static_cast<int>(s.channels), made = s.pixel > 0 ? s.pixel : channels;
  const int pixel = s.pixel > 0 ? s.pixel : 1, step = s.pixel > 0 ? 1 : out_plane;
  const uint8_t* const from = s.bytes + index * channels * plane;
  T* const to = data + sample * made * out_plane;
  for (int i = static_cast<int>(threadIdx.x); i < out_plane; i += static_cast<int>(blockDim.x)) {
    const int y = i / columns, x = i - y * columns;
    const int column = static_cast<int>(cut.left) + (cut.mirror ? columns - 1 - x : x);
    const int in_plane = static_cast<int>((cut.top + y) * s.width) + column;
#pragma unroll 4
    for (int channel = 0; channel < made; ++channel) {
      float value = 0;
      if (channel < channels) {
        const int at = channel * plane + in_plane;
        value = from[at];
        if (s.mean_count > channels) {
          value -= s.mean[at];
        } else if (s.mean_count > 0) {
          value -= s.mean[s.mean_count == 1 ? 0 : channel];
        }
        value *= s.transform.scale;
      }
      to[i * pixel + channel * step] = static_cast<T>(value);
    }
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
  const Format& format = data.format();
  const bool last = format.order == Order::channels_last;
  const int64_t pixel = last ? std::max(format.channels, out[1]) : 0;
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
                     static_cast<int>(pixel),
                     labels.data<float>()};
  on_real(data, [&]<typename T>() {
    launch(context.gpu(), make_samples<T>, {static_cast<unsigned>(options_.batch_size), 256}, s,
           data.data<T>());
  });
#else
  (void)context, (void)pass, (void)live_pass, (void)data, (void)labels;
#endif
}

}  // namespace crema

#include "data/databases/resident.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/loader/permutation.h"
#include "device/multiprocessors.h"
#include "device/parallel.h"
#include "tensor/on.h"
#ifdef __CUDACC__
#include "device/programmatic_launch.h"
#endif

namespace crema {
namespace {

// Everything needed to make a batch.
struct BatchParts {
  const uint8_t* bytes;
  const float *labels, *mean;
  int64_t mean_count, records, channels, height, width;  // of a record
  int64_t batch_size, skip, rank, ranks;
  bool shuffle;
  Random random;
  TransformParams transform;
  uint64_t pass;
  const uint64_t* live_pass;
  int64_t out_height, out_width;
  int pixel;  // channels-last: values from one pixel to the next, with zeros after the last channel
  float* label;
};

#ifdef __CUDACC__

template <typename T, int kPixel>
struct alignas(sizeof(T) * kPixel) Pixel {
  T v[kPixel];
};

// Computes the first `channels` values of a pixel; the others are zero.
template <int kPixel, typename T, typename Make>
__device__ void make_pixel(T* to, int channels, const Make& make) {
  Pixel<T, kPixel> all;
#pragma unroll
  for (int channel = 0; channel < kPixel; ++channel)
    all.v[channel] = static_cast<T>(channel < channels ? make(channel) : 0.f);
  *reinterpret_cast<Pixel<T, kPixel>*>(to) = all;
}

// Several blocks per sample, one thread per pixel.
template <typename T>
__global__ void make_samples(BatchParts s, T* data) {
  __shared__ int64_t index;
  __shared__ Cut cut;
  const int64_t sample = blockIdx.x;
  wait_for_earlier_kernels();
  if (threadIdx.x == 0) {
    const auto pass = static_cast<int64_t>(s.live_pass ? *s.live_pass : s.pass);
    const int64_t turn = s.skip + (pass * s.batch_size + sample) * s.ranks + s.rank;
    const int64_t record_index = turn % s.records, epoch_number = turn / s.records;
    const Random epoch{s.random.seed, mix(s.random.stream, static_cast<uint64_t>(epoch_number))};
    index = s.shuffle ? Permutation(s.records, epoch)(record_index) : record_index;
    const Random rng{epoch.seed, mix(epoch.stream, 1)};
    cut = s.transform.cut(s.height, s.width,
                          {rng, s.random, static_cast<uint64_t>(index), epoch_number});
    if (s.label && blockIdx.y == 0) s.label[sample] = s.labels[index];
  }
  __syncthreads();
  const int plane = static_cast<int>(s.height * s.width), columns = static_cast<int>(s.out_width);
  const int out_plane = static_cast<int>(s.out_height) * columns;
  const bool gray = s.transform.gray != GrayOf::none;
  const int channels = gray ? 1 : static_cast<int>(s.channels),
            made = s.pixel > 0 ? s.pixel : channels;
  const int pixel = s.pixel > 0 ? s.pixel : 1, step = s.pixel > 0 ? 1 : out_plane;
  const uint8_t* const from = s.bytes + index * s.channels * plane;
  T* const to = data + sample * made * out_plane;
  for (int i = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x); i < out_plane;
       i += static_cast<int>(gridDim.y * blockDim.x)) {
    const int y = i / columns, x = i - y * columns;
    const int64_t row = s.transform.behind_padding(cut.top + y, s.height);
    const int64_t column =
        s.transform.behind_padding(cut.left + (cut.mirror ? columns - 1 - x : x), s.width);
    const int in_plane = static_cast<int>(row * s.width + column);
    const auto make = [&](int channel) {
      if (row < 0 || column < 0) return 0.f;
      const int at = channel * plane + in_plane;
      float value = from[at];
      if (gray) value = s.transform.gray_of(value, from[at + plane], from[at + 2 * plane]);
      if (s.mean_count > channels) {
        value -= s.mean[at];
      } else if (s.mean_count > 0) {
        value -= s.mean[s.mean_count == 1 ? 0 : channel];
      }
      return value * s.transform.scale;
    };
    if (pixel == 8) {
      make_pixel<8>(to + i * 8, channels, make);
    } else if (pixel == 4) {
      make_pixel<4>(to + i * 4, channels, make);
    } else {
#pragma unroll 4
      for (int channel = 0; channel < made; ++channel)
        to[i * pixel + channel * step] = static_cast<T>(channel < channels ? make(channel) : 0.f);
    }
  }
  let_next_kernel_start();
}

#endif

}  // namespace

std::unique_ptr<ResidentData> ResidentData::load(Context& context, const Records& records,
                                                 const LoaderOptions& options, size_t max_bytes) {
  if (context.device() != Device::gpu || records.decodes()) return nullptr;
  const Source& source = records.source();
  const Transform& transform = records.transform();
  if (transform.augmentation().any() || transform.changes().any() || transform.numbers().flow)
    return nullptr;
  Record record;
  source.read(0, record.datum);
  decode(record, transform.color());
  auto data = std::make_unique<ResidentData>();
  data->record_ = record.shape();
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
  data->transform_ = transform.numbers();
  if (!transform.makes_gray(data->record_[0])) data->transform_.gray = GrayOf::none;
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
    constexpr int64_t kThreads = 256, kBlocks = 4 * kTypicalMultiprocessors;
    const int64_t maximum = (out[2] * out[3] + kThreads - 1) / kThreads;
    const int64_t each = std::clamp<int64_t>(kBlocks / options_.batch_size, 1, maximum);
    const dim3 blocks(static_cast<unsigned>(options_.batch_size), static_cast<unsigned>(each));
    launch_programmatic(context.gpu(), make_samples<T>, {blocks, kThreads}, s, data.data<T>());
  });
#else
  (void)context, (void)pass, (void)live_pass, (void)data, (void)labels;
#endif
}

}  // namespace crema

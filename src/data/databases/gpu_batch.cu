#include "data/databases/gpu_batch.h"

#include <algorithm>

#include "base/error.h"
#include "data/loader/permutation.h"
#include "device/multiprocessors.h"
#include "device/parallel.h"
#include "tensor/on.h"
#ifdef __CUDACC__
#include "device/programmatic_launch.h"
#endif

namespace crema {

#ifdef __CUDACC__
namespace {

// Everything needed to make a batch.
struct BatchParts {
  const StoredPicture* pictures;  // null: of all records
  AllRecords all;
  const float* mean;
  int64_t mean_count, channels;  // of a record
  TransformParams transform;
  int64_t out_height, out_width;
  int pixel;  // channels-last: values from one pixel to the next, with zeros after the last channel

  __device__ StoredPicture picture(int64_t sample) const {
    return pictures ? pictures[sample] : of_all(sample);
  }
  __device__ StoredPicture of_all(int64_t sample) const {
    const auto pass = static_cast<int64_t>(all.live_pass ? *all.live_pass : all.pass);
    const int64_t turn = all.skip + pass * all.batch_size + sample;
    const int64_t record_index =
        all.batches > 0 ? pass % all.batches * all.batch_size + sample : turn % all.count;
    const int64_t epoch_number = all.batches > 0 ? pass / all.batches : turn / all.count;
    const Random epoch{all.random.seed,
                       mix(all.random.stream, static_cast<uint64_t>(epoch_number))};
    const int64_t index = all.shuffle ? Permutation(all.count, epoch)(record_index) : record_index;
    const Random rng{epoch.seed, mix(epoch.stream, 1)};
    if (all.label && blockIdx.y == 0) all.label[sample] = all.labels[index];
    return {all.planes + index * channels * all.height * all.width, all.height, all.width,
            transform.cut(all.height, all.width,
                          {rng, all.random, static_cast<uint64_t>(index), epoch_number})};
  }
};

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
  __shared__ StoredPicture picture;
  const int64_t sample = blockIdx.x;
  wait_for_earlier_kernels();
  if (threadIdx.x == 0) picture = s.picture(sample);
  __syncthreads();
  const Cut cut = picture.cut;
  const int64_t height = picture.height, width = picture.width;
  const int plane = static_cast<int>(height * width), columns = static_cast<int>(s.out_width);
  const int out_plane = static_cast<int>(s.out_height) * columns;
  const bool gray = s.transform.gray != GrayOf::none;
  const int channels = gray ? 1 : static_cast<int>(s.channels),
            made = s.pixel > 0 ? s.pixel : channels;
  const int pixel = s.pixel > 0 ? s.pixel : 1, step = s.pixel > 0 ? 1 : out_plane;
  const uint8_t* const from = picture.planes;
  T* const to = data + sample * made * out_plane;
  for (int i = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x); i < out_plane;
       i += static_cast<int>(gridDim.y * blockDim.x)) {
    const int y = i / columns, x = i - y * columns;
    const int64_t row = s.transform.behind_padding(cut.top + y, height);
    const int64_t column =
        s.transform.behind_padding(cut.left + (cut.mirror ? columns - 1 - x : x), width);
    const int in_plane = static_cast<int>(row * width + column);
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

void make_batch(Context& context, const BatchTransform& how, const StoredPicture* pictures,
                const AllRecords& all, const Tensor& data) {
  const Shape& out = data.shape();
  const Format& format = data.format();
  const bool last = format.order == Order::channels_last;
  const int64_t pixel = last ? std::max(format.channels, out[1]) : 0;
  const BatchParts s{pictures,       all,          how.mean.data<float>(),
                     how.mean_count, how.channels, how.numbers,
                     out[2],         out[3],       static_cast<int>(pixel)};
  on_real(data, [&]<typename T>() {
    constexpr int64_t kThreads = 256, kBlocks = 4 * kTypicalMultiprocessors;
    const int64_t maximum = (out[2] * out[3] + kThreads - 1) / kThreads;
    const int64_t each = std::clamp<int64_t>(kBlocks / out[0], 1, maximum);
    const dim3 blocks(static_cast<unsigned>(out[0]), static_cast<unsigned>(each));
    launch_programmatic(context.gpu(), make_samples<T>, {blocks, kThreads}, s, data.data<T>());
  });
}

}  // namespace
#endif

BatchTransform::BatchTransform(Context& context, const Transform& transform, int64_t channels)
    : numbers(transform.numbers()), channels(channels) {
  if (!transform.makes_gray(channels)) numbers.gray = GrayOf::none;
  const std::vector<float>& image = transform.mean_image();
  const std::vector<float>& values = image.empty() ? transform.mean_values() : image;
  mean_count = static_cast<int64_t>(values.size());
  if (values.empty()) return;
  mean = Tensor(context, Shape{mean_count});
  copy_bytes(context, mean.raw(), context.device(), values.data(), Device::cpu, mean.bytes());
}

#ifdef __CUDACC__
void BatchTransform::make(Context& context, const StoredPicture* pictures,
                          const Tensor& data) const {
  make_batch(context, *this, pictures, {}, data);
}
void BatchTransform::make(Context& context, const AllRecords& records, const Tensor& data) const {
  make_batch(context, *this, nullptr, records, data);
}
#else
void BatchTransform::make(Context&, const StoredPicture*, const Tensor&) const { fail_on_cpu(); }
void BatchTransform::make(Context&, const AllRecords&, const Tensor&) const { fail_on_cpu(); }
#endif

}  // namespace crema

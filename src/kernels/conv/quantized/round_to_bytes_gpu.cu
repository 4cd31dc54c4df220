#include "device/parallel.h"
#include "kernels/conv/quantized/bytes.h"
#include "kernels/conv/quantized/round_to_bytes.h"
#include "kernels/core/divisor.h"
#include "tensor/on.h"

namespace crema {
namespace {

// kVector bytes of a pixel.
template <int kVector>
struct alignas(kVector) ByteVector {
  int8_t bytes[kVector];
};

// Neighboring indices are neighbors in x: points of row-major images, else channels.
template <typename T, int kVector>
struct RoundImage {
  const T* x;
  ByteVector<kVector>* to;
  Divisor pixel_vectors, image_points, group_vectors;
  int channels;                   // that a group of x has
  int64_t image, point, channel;  // strides of x
  bool points_first;
  float step, low, high;
  CREMA_HD void operator()(int64_t index) const {
    auto rest = static_cast<uint32_t>(index);
    uint32_t n, at, vector;
    if (points_first) {
      n = image_points.quotient(rest);
      at = rest - n * image_points.value;
      vector = n;
      n = pixel_vectors.split(vector);
    } else {
      n = pixel_vectors.split(rest);
      vector = rest;
      at = n;
      n = image_points.split(at);
    }
    uint32_t inside = vector;
    const uint32_t group = group_vectors.split(inside);
    const int first = static_cast<int>(inside) * kVector;
    const T* const from = x + n * image + at * point + (group * channels + first) * channel;
    ByteVector<kVector> result;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      result.bytes[i] = first + i < channels
                            ? byte_of(static_cast<float>(from[i * channel]), step, low, high)
                            : int8_t{0};
    }
    to[(static_cast<int64_t>(n) * image_points.value + at) * pixel_vectors.value + vector] = result;
  }
};

struct RoundWeights {
  const float* w;
  int8_t* to;
  const float* steps;
  bool one_step;
  Divisor padded, taps;
  int channels;
  float low, high;
  CREMA_HD void operator()(int64_t index) const {
    auto channel = static_cast<uint32_t>(index);
    uint32_t tap = padded.split(channel);
    const uint32_t output = taps.split(tap);
    to[index] = 0;
    if (static_cast<int>(channel) >= channels) return;
    const float value = w[(static_cast<int64_t>(output) * channels + channel) * taps.value + tap];
    to[index] = byte_of(value, steps[one_step ? 0 : output], low, high);
  }
};

}  // namespace

void round_to_bytes(Context& context, const ConvCase& c, int64_t channels, const Tensor& x,
                    const Tensor& to) {
  const QuantizedValues& values = *c.quantization->x;
  const bool row_major = c.order == Order::row_major;
  const int64_t points = c.x.count(2), in_memory = c.x_channels > 0 ? c.x_channels : c.x[1];
  const auto of_vector = [&]<typename T, int kVector>() {
    const int64_t of_group = channels / kVector, vectors = of_group * c.groups;
    parallel_for(context, c.x[0] * points * vectors,
                 RoundImage<T, kVector>{
                     x.data<T>(), reinterpret_cast<ByteVector<kVector>*>(to.raw()),
                     Divisor(vectors), Divisor(points), Divisor(of_group), static_cast<int>(c.w[1]),
                     in_memory * points, row_major ? 1 : in_memory, row_major ? points : 1,
                     row_major, values.step, values.low, values.high});
  };
  on_real(x, [&]<typename T>() {
    if (channels == 4) return of_vector.template operator()<T, 4>();
    if (channels == 8) return of_vector.template operator()<T, 8>();
    of_vector.template operator()<T, 16>();
  });
}

void round_weights_to_bytes(Context& context, const ConvCase& c, int64_t channels, const Tensor& w,
                            const Tensor& to) {
  const QuantizedWeights& values = *c.quantization->w;
  const Tensor steps(context, {static_cast<int64_t>(values.steps.size())});
  from_floats(context, values.steps.data(), steps);
  const int64_t taps = c.w.count(2);
  parallel_for(context, c.w[0] * taps * channels,
               RoundWeights{w.data<float>(), reinterpret_cast<int8_t*>(to.raw()),
                            steps.data<float>(), values.steps.size() == 1, Divisor(channels),
                            Divisor(taps), static_cast<int>(c.w[1]), values.low, values.high});
}

}  // namespace crema

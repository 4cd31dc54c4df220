#include "device/parallel.h"
#include "kernels/conv/quantized/bytes.h"
#include "kernels/conv/quantized/round_to_bytes.h"
#include "kernels/core/divisor.h"
#include "kernels/core/pack.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Values that are read in their order.
template <typename T>
struct RoundInOrder {
  const Pack<T, 8>* x;
  Pack<int8_t, 8>* to;
  ByteRounding rounding;
  CREMA_HD void operator()(int64_t index) const {
    const Pack<T, 8> values = x[index];
    Pack<int8_t, 8> bytes;
    for (int i = 0; i < 8; ++i) bytes.v[i] = rounding(static_cast<float>(values.v[i]));
    to[index] = bytes;
  }
};

// Neighboring indices are neighbors in x: points of row-major images, else channels.
template <typename T, int kVector>
struct RoundImage {
  const T* x;
  Pack<int8_t, kVector>* to;
  Divisor pixel_vectors, image_points, group_vectors;
  int channels;                   // that a group of x has
  int64_t image, point, channel;  // strides of x
  bool points_first;
  ByteRounding rounding;
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
    Pack<int8_t, kVector> result;
    for (int i = 0; i < kVector; ++i) {
      result.v[i] =
          first + i < channels ? rounding(static_cast<float>(from[i * channel])) : int8_t{0};
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
  const bool row_major = c.order == Order::row_major, is_rounded = x.dtype() == DType::u8;
  const int64_t points = c.x.count(2), in_memory = c.x_channels > 0 ? c.x_channels : c.x[1];
  const ByteRounding rounding(is_rounded ? QuantizedValues{} : *c.quantization->x);
  const auto of_type = [&]<typename T>() {
    const bool in_order = !row_major && in_memory == c.groups * channels && x.elements() % 8 == 0 &&
                          reinterpret_cast<uintptr_t>(x.raw()) % sizeof(Pack<T, 8>) == 0;
    if (in_order)
      return parallel_for(context, x.elements() / 8,
                          RoundInOrder<T>{static_cast<const Pack<T, 8>*>(x.raw()),
                                          static_cast<Pack<int8_t, 8>*>(to.raw()), rounding});
    const auto of_vector = [&]<int kVector>() {
      const int64_t of_group = channels / kVector, vectors = of_group * c.groups;
      parallel_for(
          context, c.x[0] * points * vectors,
          RoundImage<T, kVector>{static_cast<const T*>(x.raw()),
                                 static_cast<Pack<int8_t, kVector>*>(to.raw()), Divisor(vectors),
                                 Divisor(points), Divisor(of_group), static_cast<int>(c.w[1]),
                                 in_memory * points, row_major ? 1 : in_memory,
                                 row_major ? points : 1, row_major, rounding});
    };
    if (channels == 4) return of_vector.template operator()<4>();
    if (channels == 8) return of_vector.template operator()<8>();
    of_vector.template operator()<16>();
  };
  if (is_rounded) return of_type.template operator()<int8_t>();
  on_real(x, of_type);
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

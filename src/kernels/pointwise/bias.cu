#include "kernels/pointwise/bias.h"

#include "device/parallel.h"
#include "kernels/core/divisor.h"
#include "kernels/core/pack.h"
#include "kernels/reduce/reduce.h"

namespace crema {
namespace {

template <typename T>
CREMA_HD T relu_of(T value, Relu relu) {
  return !relu.on || value > 0 ? value : static_cast<T>(relu.slope) * value;
}

template <typename T>
struct AddBias {
  int64_t channels, inner;
  const T* b;
  Relu relu;
  T* y;
  CREMA_HD void operator()(int64_t i) const {
    const Compute<T> value = y[i];
    y[i] = relu_of(b ? value + b[i / inner % channels] : value, relu);
  }
};

// The same on a GPU for contiguous channels, 16 bytes at a time.
template <typename T>
struct AddBiasPacks {
  Divisor packs;  // packs per row of channels
  const WidePack<T>* b;
  Relu relu;
  WidePack<T>* y;
  CREMA_HD void operator()(int64_t i) const {
    uint32_t pack = static_cast<uint32_t>(i);
    packs.split(pack);
    WidePack<T> p = y[i];
    const WidePack<T> added = b[pack];
    for (int k = 0; k < kPackCount<T>; ++k)
      p.v[k] = relu_of(Compute<T>(p.v[k]) + Compute<T>(added.v[k]), relu);
    y[i] = p;
  }
};

// The same on a CPU, where a division per element would cost more than the rest: whole rows at a
// time.
template <typename T>
void add_bias_rows(int64_t outer, int64_t channels, int64_t inner, const T* b, Relu relu, T* y) {
  const int64_t rows = inner == 1 ? outer : outer * channels,
                length = inner == 1 ? channels : inner;
#pragma omp parallel for schedule(static) if (rows * length > 16384)
  for (int64_t row = 0; row < rows; ++row) {
    T* out = y + row * length;
    if (inner == 1 && b) {
#pragma omp simd
      for (int64_t i = 0; i < length; ++i) out[i] = relu_of(out[i] + b[i], relu);
    } else {
      const T add = b ? b[row % channels] : T(0);
#pragma omp simd
      for (int64_t i = 0; i < length; ++i) out[i] = relu_of(out[i] + add, relu);
    }
  }
}

template <typename E>
struct Taken {
  const E* dy;
  int64_t channels, inner;
  template <typename T>
  CREMA_HD T operator()(int64_t channel, int64_t row, int64_t column) const {
    return dy[(row * channels + channel) * inner + column];
  }
};

template <typename T>
struct ReluGradient {
  const T* y;
  ReluSlopes slopes;
  T* dy;
  CREMA_HD void operator()(int64_t i) const {
    dy[i] = static_cast<Compute<T>>(y[i] > 0 ? slopes.right : slopes.left) * dy[i];
  }
};

}  // namespace

template <typename T>
void add_bias(Context& context, int64_t outer, int64_t channels, int64_t inner, const T* b,
              Relu relu, T* y) {
  if (!b && !relu.on) return;
  if constexpr (std::is_same_v<T, Compute<T>>) {
    if (context.device() == Device::cpu) return add_bias_rows(outer, channels, inner, b, relu, y);
  }
  if (inner == 1 && b && takes_packs<T>(channels, b, y) && outer * channels < Divisor::kMax) {
    const int64_t packs = channels / kPackCount<T>;
    return parallel_for(context, outer * packs,
                        AddBiasPacks<T>{Divisor(packs), reinterpret_cast<const WidePack<T>*>(b),
                                        relu, reinterpret_cast<WidePack<T>*>(y)});
  }
  parallel_for(context, outer * channels * inner, AddBias<T>{channels, inner, b, relu, y});
}

template <typename T>
void bias_gradient(Context& context, int64_t outer, int64_t channels, int64_t inner, const T* dy,
                   Compute<T>* db, bool accumulate) {
#ifdef __CUDACC__
  if constexpr (!std::is_same_v<T, double>) {
    if (context.device() == Device::gpu && inner == 1) {
      return relu_bias_gradient_gpu<T>(context, outer, channels, nullptr, {}, const_cast<T*>(dy),
                                       db, accumulate);
    }
  }
#endif
  parallel_sum<Compute<T>>(context, {channels, outer, inner}, Taken<T>{dy, channels, inner},
                           {db, 1, accumulate});
}

template <typename T>
void relu_gradient(Context& context, int64_t count, const T* y, ReluSlopes slopes, T* dy) {
  parallel_for(context, count, ReluGradient<T>{y, slopes, dy}, 16384);
}

template <typename T>
void relu_and_bias_gradient(Context& context, int64_t outer, int64_t channels, int64_t inner,
                            const T* y, ReluSlopes slopes, T* dy, Compute<T>* db, bool accumulate) {
#ifdef __CUDACC__
  if constexpr (!std::is_same_v<T, double>) {
    if (context.device() == Device::gpu && inner == 1 && y && db)
      return relu_bias_gradient_gpu(context, outer, channels, y, slopes, dy, db, accumulate);
  }
#endif
  if (y) relu_gradient(context, outer * channels * inner, y, slopes, dy);
  if (db) bias_gradient<T>(context, outer, channels, inner, dy, db, accumulate);
}

#define INSTANTIATE(T)                                                                       \
  template void add_bias<T>(Context&, int64_t, int64_t, int64_t, const T*, Relu, T*);        \
  template void bias_gradient<T>(Context&, int64_t, int64_t, int64_t, const T*, Compute<T>*, \
                                 bool);                                                      \
  template void relu_gradient<T>(Context&, int64_t, const T*, ReluSlopes, T*);               \
  template void relu_and_bias_gradient<T>(Context&, int64_t, int64_t, int64_t, const T*,     \
                                          ReluSlopes, T*, Compute<T>*, bool)
INSTANTIATE(float);
INSTANTIATE(double);
INSTANTIATE(Half);
INSTANTIATE(BFloat16);

}  // namespace crema

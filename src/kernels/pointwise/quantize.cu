#include "kernels/pointwise/quantize.h"

#include <algorithm>
#include <cmath>

#include "base/ceil_div.h"
#include "device/aligned.h"
#include "device/parallel.h"
#include "kernels/reduce/extremes.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {
namespace {

template <typename C>
CREMA_HD C rounded(C x, C step, C low, C high) {
  const C n = std::rint(x / step);
  return step * (n < low ? low : n > high ? high : n);
}

template <typename T>
struct QuantizeValues {
  const T* x;
  T* y;
  Compute<T> step, low, high;
  CREMA_HD void operator()(int64_t i) const { y[i] = rounded(Compute<T>(x[i]), step, low, high); }
};

template <typename T>
struct ValuesOfBytes {
  const uint8_t* bytes;
  T* y;
  Compute<T> step;
  bool has_sign;
  CREMA_HD void operator()(int64_t i) const {
    const int n = has_sign ? static_cast<int8_t>(bytes[i]) : bytes[i];
    y[i] = step * static_cast<Compute<T>>(n);
  }
};

template <typename T>
struct QuantizeRows {
  const T* w;
  T* y;
  const float* steps;
  int64_t row_size;  // elements of a row; 0: one step for all
  Compute<T> low, high;
  CREMA_HD void operator()(int64_t i) const {
    const auto step = static_cast<Compute<T>>(steps[row_size > 0 ? i / row_size : 0]);
    y[i] = step > 0 ? rounded(Compute<T>(w[i]), step, low, high) : Compute<T>(w[i]);
  }
};

// On a CPU, whose loops divide by a row's step without looking it up for each element.
template <typename T>
void quantize_rows_on_cpu(const T* w, const float* steps, int64_t rows, int64_t row_size,
                          Compute<T> low, Compute<T> high, T* y) {
  constexpr int64_t kPiece = 4096;
  const int64_t pieces = ceil_div(row_size, kPiece);
#pragma omp parallel for schedule(static) if (rows * row_size > kPiece)
  for (int64_t i = 0; i < rows * pieces; ++i) {
    const int64_t row = i / pieces, first = i % pieces * kPiece,
                  count = std::min(kPiece, row_size - first);
    const T* const from = w + row * row_size + first;
    T* const to = y + row * row_size + first;
    const auto step = static_cast<Compute<T>>(steps[row]);
    if (!(step > 0)) {
      if (to != from) std::copy(from, from + count, to);
      continue;
    }
#pragma omp simd
    for (int64_t k = 0; k < count; ++k) to[k] = rounded(Compute<T>(from[k]), step, low, high);
  }
}

template <typename C>
struct StepsOfExtremes {
  const C *lowest, *highest;
  float largest;
  float* steps;
  CREMA_HD void operator()(int64_t row) const {
    const C most = -lowest[row] > highest[row] ? -lowest[row] : highest[row];
    steps[row] = static_cast<float>(most) / largest;
  }
};

}  // namespace

void quantize(Context& context, const QuantizedValues& values, const Tensor& x, const Tensor& y) {
  on_real(x, [&]<typename T>() {
    parallel_for(context, x.elements(),
                 QuantizeValues<T>{x.data<T>(), y.data<T>(), values.step, values.low, values.high});
  });
}

void values_of_bytes(Context& context, const QuantizedValues& values, const Tensor& bytes,
                     const Tensor& y) {
  on_real(y, [&]<typename T>() {
    parallel_for(context, y.elements(),
                 ValuesOfBytes<T>{bytes.data<uint8_t>(), y.data<T>(), values.step, values.low < 0});
  });
}

void quantize_rows(Context& context, const Tensor& steps, float low, float high, const Tensor& w,
                   const Tensor& y) {
  on_real(w, [&]<typename T>() {
    const int64_t row_size = steps.count() > 1 ? w.shape().count(1) : 0;
    if constexpr (!GpuOnly<QuantizeRows<T>>::value) {
      if (context.device() == Device::cpu)
        return quantize_rows_on_cpu(
            w.data<T>(), steps.data<float>(), row_size > 0 ? w.shape()[0] : 1,
            row_size > 0 ? row_size : w.count(), Compute<T>(low), Compute<T>(high), y.data<T>());
    }
    parallel_for(
        context, w.count(),
        QuantizeRows<T>{w.data<T>(), y.data<T>(), steps.data<float>(), row_size, low, high});
  });
}

size_t steps_workspace(const Shape& w) {
  return 2 * aligned(static_cast<size_t>(w[0]) * sizeof(double)) +
         extremes_workspace(w[0], w.count(1));
}

void steps_of_rows(Context& context, const Tensor& w, float largest, const Tensor& steps,
                   const Tensor& workspace) {
  const int64_t rows = w.shape()[0];
  const size_t each = aligned(static_cast<size_t>(rows) * sizeof(double));
  on_real(w, [&]<typename T>() {
    using C = Compute<T>;
    const DType type = sizeof(C) == sizeof(double) ? DType::f64 : DType::f32;
    const Tensor lowest = part_of(workspace, 0, {rows}, type),
                 highest = part_of(workspace, each, {rows}, type),
                 rest =
                     part_of(workspace, 2 * each,
                             {static_cast<int64_t>(extremes_workspace(rows, w.shape().count(1)))},
                             DType::u8);
    extremes(context, w, rows, lowest, highest, rest);
    parallel_for(
        context, rows,
        StepsOfExtremes<C>{lowest.data<C>(), highest.data<C>(), largest, steps.data<float>()});
  });
}

}  // namespace crema

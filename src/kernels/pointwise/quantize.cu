#include "kernels/pointwise/quantize.h"

#include <cmath>

#include "device/parallel.h"
#include "tensor/on.h"

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
struct QuantizeRows {
  const T* w;
  T* y;
  const float* steps;
  int64_t row_size;  // elements of a row; 0: one step for all
  Compute<T> low, high;
  CREMA_HD void operator()(int64_t i) const {
    const auto step = static_cast<Compute<T>>(steps[row_size > 0 ? i / row_size : 0]);
    y[i] = rounded(Compute<T>(w[i]), step, low, high);
  }
};

}  // namespace

void quantize(Context& context, const QuantizedValues& values, const Tensor& x, const Tensor& y) {
  on_real(x, [&]<typename T>() {
    parallel_for(context, x.elements(),
                 QuantizeValues<T>{x.data<T>(), y.data<T>(), values.step, values.low, values.high});
  });
}

void quantize_rows(Context& context, const Tensor& steps, float low, float high, const Tensor& w,
                   const Tensor& y) {
  on_real(w, [&]<typename T>() {
    const int64_t row_size = steps.count() > 1 ? w.shape().count(1) : 0;
    parallel_for(
        context, w.count(),
        QuantizeRows<T>{w.data<T>(), y.data<T>(), steps.data<float>(), row_size, low, high});
  });
}

}  // namespace crema

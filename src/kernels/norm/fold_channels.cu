#include "kernels/norm/fold_channels.h"

#include "device/parallel.h"
#include "tensor/on.h"

namespace crema {
namespace {

template <typename T>
struct BeginMap {
  const T* bias;
  T *factors, *shifts;
  CREMA_HD void operator()(int64_t c) const {
    factors[c] = 1;
    shifts[c] = bias ? bias[c] : T(0);
  }
};

template <typename T>
struct AppendMap {
  const T *mean, *variance, *number, *scale, *shift;
  T eps;
  T *factors, *shifts;

  CREMA_HD void operator()(int64_t c) const {
    const T share = !number ? T(1) : *number == 0 ? T(0) : 1 / *number;
    T factor = scale ? scale[c] : T(1);
    if (variance) factor /= sqrt(variance[c] * share + eps);
    const T centre = mean ? mean[c] * share : T(0);
    factors[c] *= factor;
    shifts[c] = (shifts[c] - centre) * factor + (shift ? shift[c] : T(0));
  }
};

template <typename T>
struct MultiplyRow {
  const T* factors;
  int64_t each;  // elements of a row
  T* w;
  CREMA_HD void operator()(int64_t i) const { w[i] *= factors[i / each]; }
};

}  // namespace

void begin_channel_map(Context& context, const Tensor& bias, const Tensor& factors,
                       const Tensor& shifts) {
  on(factors, [&]<typename T>() {
    parallel_for(context, factors.count(),
                 BeginMap<T>{bias.data<T>(), factors.data<T>(), shifts.data<T>()});
  });
}

void append_channel_map(Context& context, const ChannelValues& map, const Tensor& factors,
                        const Tensor& shifts) {
  on(factors, [&]<typename T>() {
    parallel_for(context, factors.count(),
                 AppendMap<T>{map.mean.data<T>(), map.variance.data<T>(), map.number.data<T>(),
                              map.scale.data<T>(), map.shift.data<T>(), static_cast<T>(map.eps),
                              factors.data<T>(), shifts.data<T>()});
  });
}

void scale_rows(Context& context, const Tensor& factors, const Tensor& w) {
  on(w, [&]<typename T>() {
    parallel_for(context, w.count(),
                 MultiplyRow<T>{factors.data<T>(), w.count() / factors.count(), w.data<T>()});
  });
}

}  // namespace crema

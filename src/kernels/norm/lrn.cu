// The reference implementation of local response normalization: one index per element, for GPU and
// CPU.
#include "device/parallel.h"
#include "kernels/norm/lrn_geometry.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Sum of value(neighbor) over the neighborhood of i.
template <typename T, typename Value>
CREMA_HD T neighborhood_sum(const LrnGeometry& g, int64_t i, const Value& value) {
  T sum = 0;
  for (int64_t a = g.rows.before(i); a <= g.rows.after(i); ++a) {
    for (int64_t b = g.columns.before(i); b <= g.columns.after(i); ++b) {
      sum += value(i + a * g.rows.stride + b * g.columns.stride);
    }
  }
  return sum;
}

template <typename T>
struct SquareAt {
  const T* x;
  CREMA_HD T operator()(int64_t i) const { return x[i] * x[i]; }
};

template <typename T>
struct ValueAt {
  const T* x;
  CREMA_HD T operator()(int64_t i) const { return x[i]; }
};

template <typename T>
struct LrnForward {
  LrnGeometry g;
  T alpha, beta, k;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t i) const {
    y[i] = x[i] * pow(k + alpha * neighborhood_sum<T>(g, i, SquareAt<T>{x}), -beta);
  }
};

// dx = dy * s^-beta and ratio = dy * x * s^(-beta - 1).
template <typename T>
struct LrnRatio {
  LrnGeometry g;
  T alpha, beta, k;
  const T *x, *dy;
  T *dx, *ratio;
  CREMA_HD void operator()(int64_t i) const {
    const T s = k + alpha * neighborhood_sum<T>(g, i, SquareAt<T>{x});
    const T direct = dy[i] * pow(s, -beta);
    dx[i] = direct;
    ratio[i] = direct * x[i] / s;
  }
};

template <typename T>
struct LrnSpread {
  LrnGeometry g;
  T factor;
  const T *x, *ratio;
  T* dx;
  CREMA_HD void operator()(int64_t i) const {
    dx[i] -= factor * x[i] * neighborhood_sum<T>(g, i, ValueAt<T>{ratio});
  }
};

}  // namespace

bool lrn_forward_reference(Context& context, const LrnWindow& window, const Tensor& x,
                           const Tensor& y) {
  if (is_half(x.dtype())) return false;
  on(x, [&]<typename T>() {
    parallel_for(context, x.count(),
                 LrnForward<T>{LrnGeometry(window, x), static_cast<T>(window.alpha),
                               static_cast<T>(window.beta), static_cast<T>(window.k), x.data<T>(),
                               y.data<T>()},
                 256);
  });
  return true;
}

bool lrn_backward_reference(Context& context, const LrnWindow& window, const Tensor& x,
                            const Tensor& dy, const Tensor& dx, const Tensor& ratios) {
  if (is_half(x.dtype())) return false;
  const LrnGeometry g(window, x);
  on(x, [&]<typename T>() {
    T* const ratio = ratios.data<T>();
    parallel_for(
        context, x.count(),
        LrnRatio<T>{g, static_cast<T>(window.alpha), static_cast<T>(window.beta),
                    static_cast<T>(window.k), x.data<T>(), dy.data<T>(), dx.data<T>(), ratio},
        256);
    parallel_for(context, x.count(),
                 LrnSpread<T>{g, static_cast<T>(2 * window.alpha * window.beta), x.data<T>(), ratio,
                              dx.data<T>()},
                 256);
  });
  return true;
}

}  // namespace crema

// The reference implementation of local response normalization: one index per element, for GPU and
// CPU.
#include "device/parallel.h"
#include "kernels/norm/lrn_geometry.h"
#include "tensor/on.h"

namespace crema {
namespace {

// Sum of value(neighbor) over the neighborhood of i.
template <typename C, typename Value>
CREMA_HD C neighborhood_sum(const LrnGeometry& g, int64_t i, const Value& value) {
  C sum = 0;
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
  CREMA_HD Compute<T> operator()(int64_t i) const {
    const Compute<T> value = x[i];
    return value * value;
  }
};

template <typename T>
struct ValueAt {
  const T* x;
  CREMA_HD T operator()(int64_t i) const { return x[i]; }
};

template <typename T>
struct LrnForward {
  using C = Compute<T>;
  LrnGeometry g;
  C alpha, beta, k;
  const T* x;
  T* y;
  CREMA_HD void operator()(int64_t i) const {
    const C value = x[i];
    y[i] = value * pow(k + alpha * neighborhood_sum<C>(g, i, SquareAt<T>{x}), -beta);
  }
};

// ratio = dy * x * s^(-beta - 1).
template <typename T>
struct LrnRatio {
  using C = Compute<T>;
  LrnGeometry g;
  C alpha, beta, k;
  const T *x, *dy;
  C* ratio;
  CREMA_HD void operator()(int64_t i) const {
    const C s = k + alpha * neighborhood_sum<C>(g, i, SquareAt<T>{x});
    const C value = x[i], gradient = dy[i];
    ratio[i] = gradient * pow(s, -beta) * value / s;
  }
};

template <typename T>
struct LrnSpread {
  using C = Compute<T>;
  LrnGeometry g;
  C alpha, beta, k;
  const T *x, *dy;
  const C* ratio;
  T* dx;
  CREMA_HD void operator()(int64_t i) const {
    const C s = k + alpha * neighborhood_sum<C>(g, i, SquareAt<T>{x});
    const C value = x[i], gradient = dy[i];
    dx[i] = gradient * pow(s, -beta) -
            2 * alpha * beta * value * neighborhood_sum<C>(g, i, ValueAt<C>{ratio});
  }
};

Refusal lrn_forward_plain(Context& context, const LrnWindow& window, const Tensor& x,
                          const Tensor& y) {
  on_real(x, [&]<typename T>() {
    using C = Compute<T>;
    parallel_for(context, x.count(),
                 LrnForward<T>{LrnGeometry(window, x), static_cast<C>(window.alpha),
                               static_cast<C>(window.beta), static_cast<C>(window.k), x.data<T>(),
                               y.data<T>()},
                 256);
  });
  return nullptr;
}

Refusal lrn_backward_plain(Context& context, const LrnWindow& window, const Tensor& x,
                           const Tensor& dy, const Tensor& dx, const Tensor& ratios) {
  const LrnGeometry g(window, x);
  on_real(x, [&]<typename T>() {
    using C = Compute<T>;
    const C alpha = window.alpha, beta = window.beta, k = window.k;
    C* const ratio = ratios.data<C>();
    parallel_for(context, x.count(),
                 LrnRatio<T>{g, alpha, beta, k, x.data<T>(), dy.data<T>(), ratio}, 256);
    parallel_for(context, x.count(),
                 LrnSpread<T>{g, alpha, beta, k, x.data<T>(), dy.data<T>(), ratio, dx.data<T>()},
                 256);
  });
  return nullptr;
}

REGISTER_KERNEL(lrn_forward_kernels, "plain", RunsOn::both, 0, lrn_forward_plain);
REGISTER_KERNEL(lrn_backward_kernels, "plain", RunsOn::both, 0, lrn_backward_plain);

}  // namespace
}  // namespace crema

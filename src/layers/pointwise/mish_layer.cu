// Mish: a smooth function that is close to x above zero and to 0 far below it.
//   y = x * t   with t = tanh(log(1 + exp(x)))
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy * (t + x * (1 - t^2) / (1 + exp(-x))).
#include "kernels/pointwise/pointwise_math.h"
#include "layers/pointwise/pointwise_layer.h"

namespace crema {
namespace {

// With e = exp(x) and n = e * (e + 2): t = n / (n + 2), which reaches 1 in any real type before x =
// 40.
template <typename T>
struct MishTerms {
  T e, n, r;
  CREMA_HD explicit MishTerms(T x)
      : e(exp_of(x < T(40) ? x : T(40))), n(e * (e + T(2))), r(reciprocal_of(n + T(2))) {}
  CREMA_HD T t() const { return n * r; }
};

struct Mish {
  static constexpr LayerFacts facts = {
      .kind = LayerKind::activation, .elementwise = true, .keeps_zero = true};
  static constexpr bool from_top() { return false; }
  template <typename T>
  CREMA_HD T value(T x) const {
    return x * MishTerms<T>(x).t();
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T x) const {
    const MishTerms<T> m(x);
    return dy * (m.t() + x * (T(4) * m.e * (T(1) + m.e) * m.r) * m.r);
  }
};

}  // namespace
REGISTER_LAYER(Mish, FunctionLayer<Mish>);
}  // namespace crema

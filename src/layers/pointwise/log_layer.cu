// Log: the logarithm of a scaled and shifted value.
//   y = log(shift + scale * x) / log(base); base -1 means e
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy * scale / ((shift + scale * x) * log(base)).
#include <cmath>

#include "kernels/pointwise/pointwise_math.h"
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/pointwise.pb.h"

namespace crema {
namespace {

struct Logarithm {
  static constexpr LayerFacts facts = {.kind = LayerKind::math, .elementwise = true};
  double scale, shift, factor;  // factor: 1 / log(base)
  explicit Logarithm(const LogParameter& p)
      : scale(p.scale()), shift(p.shift()), factor(p.base() == -1 ? 1 : 1 / std::log(p.base())) {
    require(p.base() == -1 || (p.base() > 0 && p.base() != 1),
            "base must be above 0 and not 1, or -1 for e, but is ", p.base());
  }
  static constexpr bool from_top() { return false; }
  template <typename T>
  CREMA_HD T value(T x) const {
    return T(factor) * log_of(T(scale) * x + T(shift));
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T x) const {
    return dy * T(factor * scale) / (T(scale) * x + T(shift));
  }
};

using LogLayer = FunctionLayer<Logarithm, LogParameter>;

}  // namespace
REGISTER_LAYER(Log, LogLayer);
}  // namespace crema

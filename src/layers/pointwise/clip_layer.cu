// Clip: limits values to a range.
//   y = min(max(x, min), max)
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy where min <= x <= max, 0 elsewhere.
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

struct Clip {
  float minimum, maximum;
  explicit Clip(const ClipParameter& p) : minimum(p.min()), maximum(p.max()) {
    require(p.has_min() && p.has_max(),
            "Clip needs its bounds: clip_param { min: -1 max: 1 }, for example");
    require(minimum <= maximum, "min, ", minimum, ", is larger than max, ", maximum);
  }
  static constexpr bool from_top() { return false; }
  template <typename T>
  CREMA_HD T value(T x) const {
    const T bounded = x < T(minimum) ? T(minimum) : x;
    return bounded > T(maximum) ? T(maximum) : bounded;
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T x) const {
    return x >= T(minimum) && x <= T(maximum) ? dy : T(0);
  }
};

using ClipLayer = FunctionLayer<Clip, ClipParameter>;

}  // namespace
REGISTER_LAYER(Clip, ClipLayer);
}  // namespace crema

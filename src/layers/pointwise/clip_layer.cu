// Clip: keeps values within bounds.
//   y = min(max(x, min), max)
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy where min <= x <= max, 0 elsewhere.
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

struct Clip {
  float least, most;
  explicit Clip(const ClipParameter& p) : least(p.min()), most(p.max()) {
    require(p.has_min() && p.has_max(),
            "Clip needs its bounds: clip_param { min: -1 max: 1 }, for example");
    require(least <= most, "min, ", least, ", is larger than max, ", most);
  }
  static constexpr bool from_top() { return false; }
  template <typename T>
  CREMA_HD T value(T x) const {
    const T bounded = x < T(least) ? T(least) : x;
    return bounded > T(most) ? T(most) : bounded;
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T x) const {
    return x >= T(least) && x <= T(most) ? dy : T(0);
  }
};

using ClipLayer = FunctionLayer<Clip, ClipParameter>;

}  // namespace
REGISTER_LAYER(Clip, ClipLayer);
}  // namespace crema

// NegReLU (FlowNet, for disparities): the negative part.
//   y = min(x, 0) + negative_slope * max(x, 0)
// Shapes: y as x, any.
// Parameters: none. negative_slope of relu_param is the slope on the right.
// Gradient: dx = dy where x < 0, negative_slope * dy elsewhere.
#include "layers/pointwise/pointwise_layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

struct NegativePart {
  float slope;
  explicit NegativePart(const ReLUParameter& p) : slope(p.negative_slope()) {}
  static constexpr bool from_top() { return false; }
  template <typename T>
  CREMA_HD T value(T x) const {
    return x < 0 ? x : T(slope) * x;
  }
  template <typename T>
  CREMA_HD T gradient(T dy, T x) const {
    return x < 0 ? dy : T(slope) * dy;
  }
};

using NegReluLayer = FunctionLayer<NegativePart, ReLUParameter>;

}  // namespace
REGISTER_LAYER(NegReLU, NegReluLayer);
}  // namespace crema

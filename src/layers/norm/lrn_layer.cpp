// LRN: local response normalization, divides by a power of the sum of squares in a neighbourhood.
//   y = x / s^beta    s = k + a * (sum of x^2 over the neighbourhood; 0 outside of the blob)
//   ACROSS_CHANNELS   local_size channels at the same position; a = alpha / local_size
//   WITHIN_CHANNEL    local_size x local_size pixels of the same channel;
//                     a = alpha / local_size^2, and k is 1 whatever the file says
// Shapes: x (N, C, H, W), across channels any with at least two axes; y the same.
// Parameters: none.
// Gradient: dx = dy / s^beta - 2 a beta x * (sum over the neighbourhood of dy x / s^(beta + 1)).
#include "kernels/norm/lrn.h"
#include "layers/layer.h"
#include "proto/params/normalization.pb.h"

namespace crema {
namespace {

class LrnLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::norm, .keeps_channels = true};

 private:
  LayerTraits traits() const override {
    return {
        .order_rule = OrderRule::any_in_32_bits, .half_rule = half_rule(), .reads = {true, false}};
  }
  HalfRule half_rule() const {
    return window_.across_channels ? HalfRule::follows : HalfRule::never;
  }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    const LRNParameter& p = params<LRNParameter>();
    require(p.local_size() % 2 == 1 && p.local_size() <= 65535,
            "local_size must be odd, so that the neighbourhood has a middle, and at most 65535, "
            "but is ",
            p.local_size());
    const bool across = p.norm_region() == LRNParameter::ACROSS_CHANNELS;
    require(across ? bottoms[0].axes() >= 2 : bottoms[0].axes() == 4,
            "LRN takes (N, C, H, W), but the bottom is ", bottoms[0].brief());
    const double size = p.local_size();
    window_ = {across, p.local_size(), p.alpha() / (across ? size : size * size), p.beta(),
               across ? p.k() : 1};
  }

  Inference infer(const std::vector<Shape>& bottoms) const override { return {{bottoms[0]}, {}}; }

  Prepared prepare(Context& context, const Preparation& preparation) const override {
    if (!preparation.backward) return {};
    Prepared prepared;
    prepared.workspace = lrn_workspace(context, window_, preparation.bottoms[0], preparation.dtype);
    return prepared;
  }
  void forward(Context& context, const Forward& pass) const override {
    lrn_forward(context, window_, pass.bottom[0], pass.top[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    if (!pass.bottom_diff[0]) return;
    lrn_backward(context, window_, pass.bottom[0], pass.top_diff[0], pass.bottom_diff[0],
                 pass.workspace);
  }

  LrnWindow window_;
};

}  // namespace
REGISTER_LAYER(LRN, LrnLayer);
}  // namespace crema

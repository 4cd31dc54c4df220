// AdaptivePooling: pooling to output_h by output_w values (output_size is both), whatever the size
// of the image; size 1 is global pooling.
//   y[h,w] = mean (AVE, the default) or maximum (MAX) of x over rows floor(h * H / H') to
//            ceil((h + 1) * H / H') - 1, columns likewise; of equal values the first wins
// Shapes: x (N, C, H, W), y (N, C, H', W').
// Parameters: none.
// Gradient: MAX passes dy to the maximum's position, AVE an equal share to each pixel of the
// window.
#include "kernels/pool/adaptive_pool.h"
#include "layers/layer.h"
#include "proto/params/modern_shape.pb.h"

namespace crema {
namespace {

class AdaptivePoolingLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::pooling, .keeps_channels = true};

 private:
  const AdaptivePoolingParameter& p() const { return params<AdaptivePoolingParameter>(); }
  bool largest() const { return p().pool() == AdaptivePoolingParameter::MAX; }
  LayerTraits traits() const override {
    return {.order_rule = OrderRule::any, .half_rule = HalfRule::follows, .reads = {false, false}};
  }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().has_output_h() == p().has_output_w(),
            "output_h and output_w must be given together");
    require(p().has_output_size() != p().has_output_h(),
            "AdaptivePooling needs output_size, or output_h and output_w: "
            "adaptive_pooling_param { output_size: 7 }, for example");
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() == 4, "AdaptivePooling takes images (N, C, H, W), but the bottom is ",
            x.brief());
    Shape y = x;
    y[2] = p().has_output_h() ? p().output_h() : p().output_size();
    y[3] = p().has_output_w() ? p().output_w() : p().output_size();
    require(y[2] > 0 && y[3] > 0, "the output has size ", y[2], " by ", y[3],
            ", but must have at least 1 by 1");
    if (!largest()) return {{y}, {}};
    return {{y}, {{y, DType::i32}}};
  }

  static Tensor position(const std::vector<Tensor>& saved) {
    return saved.empty() ? Tensor() : saved[0];
  }
  void forward(Context& context, const Forward& pass) const override {
    adaptive_pool(context, largest(), pass.bottom[0], position(pass.saved), pass.top[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    adaptive_pool_gradient(context, largest(), position(pass.saved), pass.top_diff[0],
                           pass.bottom_diff[0]);
  }
};

}  // namespace
REGISTER_LAYER(AdaptivePooling, AdaptivePoolingLayer);
}  // namespace crema

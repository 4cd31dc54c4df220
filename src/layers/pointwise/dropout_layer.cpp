// Dropout: in training sets a random fraction of the values to zero, so that no unit relies on a
// single other one.
//   training: y = x * mask / (1 - dropout_ratio); mask is 0 with probability dropout_ratio, else 1
//   testing:  y = x with scale_train: false (a fork) instead y = x * mask and y = x * (1 -
//   dropout_ratio)
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = dy with the same mask and factor. The mask is a function of seed, layer and pass:
// backward recomputes it. Ranks that share a batch use the masks that one rank would, if samples
// are the first axis of x.
#include "layers/layer.h"
#include "layers/pointwise/dropout_params.h"

namespace crema {
namespace {

class DropoutLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::dropout, .elementwise = true, .keeps_zero = true};

 private:
  LayerTraits traits() const override {
    return {.is_view = !params_.changes(),
            .in_place = true,
            .order_rule = OrderRule::any,
            .half_rule = HalfRule::follows,
            .reads = {false, false}};
  }
  Inference infer(const std::vector<Shape>& bottoms) const override { return {{bottoms[0]}, {}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    params_ = DropoutParams(params<DropoutParameter>(), training());
  }

  template <typename Pass>
  void run(Context& context, const Pass& pass, const Tensor& x, const Tensor& y) const {
    if (traits().is_view && x.raw() == y.raw()) return;
    dropout(context, params_.mask(context.random(id(), pass.pass, pass.live_pass), pass.share), x,
            y);
  }

  void forward(Context& context, const Forward& pass) const override {
    run(context, pass, pass.bottom[0], pass.top[0]);
  }
  void backward(Context& context, const Backward& pass) const override {
    run(context, pass, pass.top_diff[0], pass.bottom_diff[0]);
  }

  DropoutParams params_;
};

}  // namespace
REGISTER_LAYER(Dropout, DropoutLayer);
}  // namespace crema

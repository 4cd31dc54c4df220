// SeLuDropout (forks): Dropout for nets of SELU, whose values keep their mean and variance.
//   training: y = a * x + b, or a * alpha + b with probability dropout_ratio;
//             with q = 1 - dropout_ratio, a = (q (1 + (1 - q) alpha^2))^(-1/2),
//             b = -a (1 - q) alpha
//   testing:  y = x
// Shapes: y as x, any.
// Parameters: none.
// Gradient: dx = a * dy, or 0 where x was dropped. The mask is a function of seed, layer and pass:
// backward recomputes it.
#include <cmath>

#include "kernels/pointwise/dropout.h"
#include "layers/layer.h"
#include "proto/params/activation.pb.h"

namespace crema {
namespace {

class SeluDropoutLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::dropout, .elementwise = true};

 private:
  const SeLuDropoutParameter& p() const { return params<SeLuDropoutParameter>(); }
  LayerTraits traits() const override {
    return {.is_view = !training(),
            .in_place = true,
            .order_rule = OrderRule::any,
            .half_rule = HalfRule::follows,
            .reads = {false, false}};
  }
  Inference infer(const std::vector<Shape>& bottoms) const override { return {{bottoms[0]}, {}}; }

  void setup(Context&, const std::vector<Shape>&) override {
    require(p().dropout_ratio() > 0 && p().dropout_ratio() < 1, "dropout_ratio is ",
            p().dropout_ratio(), ", but a probability above 0 and below 1 is needed");
  }

  template <typename Pass>
  void run(Context& context, const Pass& pass, const Tensor& x, const Tensor& y,
           bool gradient) const {
    if (!training()) {
      if (x.raw() != y.raw()) copy(context, x, y);
      return;
    }
    const double alpha = p().alpha(), share = p().dropout_ratio();
    const double a = 1 / std::sqrt((1 - share) * (1 + share * alpha * alpha));
    const double b = -a * share * alpha;
    const DropoutMask mask{context.random(id(), pass.pass, pass.live_pass),
                           static_cast<uint32_t>(share * 4294967296.0), static_cast<float>(a),
                           pass.share};
    DropoutValues values;
    if (!gradient) values = {static_cast<float>(b), static_cast<float>(a * alpha + b)};
    dropout(context, mask, x, y, values);
  }

  void forward(Context& context, const Forward& pass) const override {
    run(context, pass, pass.bottom[0], pass.top[0], false);
  }
  void backward(Context& context, const Backward& pass) const override {
    run(context, pass, pass.top_diff[0], pass.bottom_diff[0], true);
  }
};

}  // namespace
REGISTER_LAYER(SeLuDropout, SeluDropoutLayer);
}  // namespace crema

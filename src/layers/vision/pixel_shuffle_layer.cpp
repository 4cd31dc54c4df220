// PixelShuffle: depth-to-space: channels become blocks of r x r pixels (sub-pixel convolution), r =
// `upscale_factor`.
//   y[n, c, h*r + i, w*r + j] = x[n, (c*r + i)*r + j, h, w]   for i, j < r
// Shapes: x (N, C*r*r, H, W), y (N, C, H*r, W*r).
// Parameters: none.
// Gradient: dx is dy moved back.
#include "layers/shape/strided_copy_layer.h"
#include "proto/params/modern_shape.pb.h"

namespace crema {
namespace {

class PixelShuffleLayer : public StridedCopyLayer {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::resize, .copies = true};

 private:
  int64_t factor() const { return params<PixelShuffleParameter>().upscale_factor(); }
  LayerTraits traits() const override {
    LayerTraits traits = StridedCopyLayer::traits();
    traits.order_rule = OrderRule::any;
    return traits;
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const int64_t r = factor();
    require(r > 0, "PixelShuffle needs pixel_shuffle_param { upscale_factor: 2 }, for example");
    require(x.axes() == 4, "PixelShuffle takes images (N, C, H, W), but the bottom is ", x.brief());
    require(x[1] % (r * r) == 0, "upscale_factor ", r, " needs a multiple of ", r * r,
            " channels, but the bottom is ", x.brief());
    return {{{x[0], x[1] / (r * r), x[2] * r, x[3] * r}}, {}};
  }

  StridedCopy moves(const Tensor& x, const Tensor& y) const override {
    const std::vector<int64_t> from = steps_of(x), to = steps_of(y);
    const int64_t r = factor();
    StridedCopy moves;
    moves.axes = {{x.shape()[0], to[0], from[0]},
                  {y.shape()[1], to[1], r * r * from[1]},
                  {r, to[2], r * from[1]},
                  {r, to[3], from[1]},
                  {x.shape()[2], r * to[2], from[2]},
                  {x.shape()[3], r * to[3], from[3]}};
    return moves;
  }
};

}  // namespace
REGISTER_LAYER(PixelShuffle, PixelShuffleLayer);
}  // namespace crema

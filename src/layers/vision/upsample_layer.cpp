// Upsample, with the two meanings it has in forks. One bottom: pixels are repeated.
//   y[n, c, h, w] = x[n, c, h / scale_h, w / scale_w]   rounded down; `scale` is both
// Two bottoms: values go back to where a max pooling found them; the second bottom is its mask.
//   y[n, c, mask[n,c,i]] = x[n,c,i], 0 elsewhere; of several values for one position the last wins
// Shapes: x (N, C, H, W), the mask as x; y (N, C, H*scale_h, W*scale_w). With a mask also
// (N, C, upsample_h, upsample_w), or one row less with pad_out_h, one column less with pad_out_w.
// Parameters: none.
// Gradient: dx = the sum of dy over the pixel's copies; with a mask dx[n,c,i] =
// dy[n,c,mask[n,c,i]].
#include "kernels/pool/unpool.h"
#include "layers/shape/strided_copy_layer.h"
#include "proto/params/forks_segmentation.pb.h"
#include "tensor/part.h"

namespace crema {
namespace {

class UpsampleLayer : public StridedCopyLayer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::resize, .keeps_channels = true, .copies = true};

 private:
  const UpsampleParameter& p() const { return params<UpsampleParameter>(); }
  Arity bottoms() const override { return {1, 2}; }
  bool differentiable(int bottom) const override { return bottom == 0; }
  LayerTraits traits() const override {
    LayerTraits traits = StridedCopyLayer::traits();
    traits.order_rule = OrderRule::any;
    traits.reads = {masked_, false};
    return traits;
  }
  int64_t scale_h() const { return p().has_scale_h() ? p().scale_h() : p().scale(); }
  int64_t scale_w() const { return p().has_scale_w() ? p().scale_w() : p().scale(); }

  void setup(Context&, const std::vector<Shape>& bottoms) override {
    masked_ = bottoms.size() == 2;
    require(scale_h() > 0 && scale_w() > 0, "scale is ", scale_h(), " by ", scale_w(),
            ", but must be at least 1");
    require(p().has_scale_h() == p().has_scale_w(), "scale_h and scale_w must be given together");
    require(p().has_upsample_h() == p().has_upsample_w(),
            "upsample_h and upsample_w must be given together");
    require(masked_ || (!p().has_upsample_h() && !p().pad_out_h() && !p().pad_out_w()),
            "upsample_h, upsample_w, pad_out_h and pad_out_w go with a second bottom, the mask of "
            "a max pooling; with one bottom the scale alone decides");
    require((!p().pad_out_h() || scale_h() == 2) && (!p().pad_out_w() || scale_w() == 2),
            "pad_out_h and pad_out_w go with a scale of 2 only, but it is ", scale_h(), " by ",
            scale_w());
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() == 4, "Upsample takes images (N, C, H, W), but the bottom is ", x.brief());
    require(!masked_ || bottoms[1] == x, "the mask must have the shape of the first bottom, ",
            x.brief(), ", but is ", bottoms.back().brief());
    if (p().has_upsample_h()) return {{{x[0], x[1], p().upsample_h(), p().upsample_w()}}, {}};
    return {{{x[0], x[1], x[2] * scale_h() - p().pad_out_h(), x[3] * scale_w() - p().pad_out_w()}},
            {}};
  }

  Prepared prepare(Context&, const Preparation& preparation) const override {
    Prepared prepared;
    if (masked_) prepared.workspace = preparation.tops[0].count() * sizeof(int32_t);
    return prepared;
  }

  StridedCopy moves(const Tensor& x, const Tensor& y) const override {
    StridedCopy moves;
    moves.axes = moved_axes(x.shape(), x, y);
    moves.axes.push_back({scale_h(), moves.axes[2].to, 0});
    moves.axes.push_back({scale_w(), moves.axes[3].to, 0});
    moves.axes[2].to *= scale_h();
    moves.axes[3].to *= scale_w();
    return moves;
  }

  void forward(Context& context, const Forward& pass) const override {
    if (!masked_) return StridedCopyLayer::forward(context, pass);
    const Tensor& y = pass.top[0];
    unpool(context, pass.bottom[0], pass.bottom[1],
           part_of(pass.workspace, 0, {y.count()}, DType::i32), y);
  }
  void backward(Context& context, const Backward& pass) const override {
    if (!masked_) return StridedCopyLayer::backward(context, pass);
    unpool_gradient(context, pass.bottom[1], pass.top_diff[0], pass.bottom_diff[0]);
  }

  bool masked_ = false;
};

}  // namespace
REGISTER_LAYER(Upsample, UpsampleLayer);
}  // namespace crema

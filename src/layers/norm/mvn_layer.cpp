// MVN: normalizes each channel of each image (or each image, with across_channels) to mean 0 and,
// unless normalize_variance is false, variance 1.
//   y = (x - m) / (s + eps)   with m = mean of x, s = sqrt(mean of (x - m)^2)
// Shapes: y as x.
// Parameters: none.
// Gradient: dx = (dy - mean of dy - y * mean of (dy * y)) / (s + eps); dy - mean of dy without the
// variance.
#include <algorithm>

#include "kernels/norm/row_norm.h"
#include "layers/layer.h"
#include "proto/params/normalization.pb.h"

namespace crema {
namespace {

class MVNLayer : public Layer {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::norm, .keeps_channels = true, .centres = true};

 private:
  const MVNParameter& p() const { return params<MVNParameter>(); }
  LayerTraits traits() const override {
    return {.in_place = true, .reads = {false, p().normalize_variance()}};
  }

  int64_t rows(const Shape& x) const {
    return x.count(0, p().across_channels() ? 1 : std::min(2, x.axes()));
  }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    require(x.axes() >= 1, "MVN needs a bottom with images (axis 0), but this one is a scalar");
    const Shape each{rows(x)};
    return {{x}, {{each, {}}, {each, {}}}};  // saved: mean, and 1 / (s + eps)
  }

  RowNormCase case_of(const Shape& x) const {
    RowNormCase c;
    c.view = RowNormView::of_rows(rows(x), x.count() / std::max<int64_t>(rows(x), 1));
    c.eps = p().eps();
    c.divide = p().normalize_variance() ? RowNormCase::Divide::deviation_plus_eps
                                        : RowNormCase::Divide::nothing;
    c.backward_reads_y = true;
    return c;
  }

  void forward(Context& context, const Forward& pass) const override {
    const Tensor& x = pass.bottom[0];
    row_norm_forward(context, case_of(x.shape()), {}, x, pass.top[0],
                     {pass.saved[0], pass.saved[1]});
  }

  void backward(Context& context, const Backward& pass) const override {
    const Tensor& dy = pass.top_diff[0];
    RowNormGradients gradients;
    gradients.dx = pass.bottom_diff[0];
    // Without the variance, the gradient does not depend on y, which is not kept.
    const Tensor& y = p().normalize_variance() ? pass.top[0] : dy;
    row_norm_backward(context, case_of(dy.shape()), {}, y, dy, {pass.saved[0], pass.saved[1]},
                      gradients, {});
  }
};

}  // namespace
REGISTER_LAYER(MVN, MVNLayer);
}  // namespace crema

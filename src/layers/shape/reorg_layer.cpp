// Reorg: space-to-depth: blocks of s x s pixels become channels (the passthrough of YOLO version
// 2), s = `stride`; with reverse, depth-to-space.
//   reverse:  y[n, c, h*s + i, w*s + j] = x[n, (i*s + j)*C/s^2 + c, h, w]   for c < C/s^2; i, j < s
//   else:     the same formula read from right to left, with y viewed as (N, C, H, W) and x as
//             (N, C/s^2, H*s, W*s), whatever their shapes. Darknet does this, so trained weights
//             need it.
// Shapes: x (N, C, H, W), y (N, C*s*s, H/s, W/s), or with reverse (N, C/(s*s), H*s, W*s); s divides
// H and W and s*s divides C.
// Parameters: none.
// Gradient: dx is dy moved back.
#include "layers/shape/strided_copy_layer.h"
#include "proto/params/forks_yolo.pb.h"

namespace crema {
namespace {

class ReorgLayer : public StridedCopyLayer {
  const ReorgParameter& p() const { return params<ReorgParameter>(); }

  Inference infer(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    const int64_t s = p().stride();
    require(s > 0, "Reorg needs reorg_param { stride: 2 }, for example");
    require(x.axes() == 4, "Reorg takes images (N, C, H, W), but the bottom is ", x.brief());
    require(x[1] % (s * s) == 0, "stride ", s, " needs a multiple of ", s * s,
            " channels, but the bottom is ", x.brief());
    if (p().reverse()) return {{{x[0], x[1] / (s * s), x[2] * s, x[3] * s}}, {}};
    require(x[2] % s == 0 && x[3] % s == 0, "stride ", s,
            " must divide height and width of the bottom, which is ", x.brief());
    return {{{x[0], x[1] * s * s, x[2] / s, x[3] / s}}, {}};
  }

  StridedCopy moves(const Tensor& x, const Tensor&) const override {
    const int64_t s = p().stride(), images = x.shape()[0], channels = x.shape()[1] / (s * s),
                  height = x.shape()[2], width = x.shape()[3];
    const int64_t points = height * width, image = x.shape().count(1), row = width * s;
    const StridedCopy reverse{{{images, image, image},
                               {s, row, s * channels * points},
                               {s, 1, channels * points},
                               {channels, s * s * points, points},
                               {height, s * row, width},
                               {width, s, 1}}};
    return p().reverse() ? reverse : reverse.reversed();
  }
};

}  // namespace
REGISTER_LAYER(Reorg, ReorgLayer);
}  // namespace crema

// PSROIPooling: the mean over each cell of a grid on each RoI, every cell from its own channels
// (R-FCN).
//   y[r,c,i,j] = mean of x[n, (c * group_size + i) * group_size + j, h, w] over the cell, 0 where
//   the cell is empty The RoI from its rounded x1, y1 to x2 + 1, y2 + 1, times spatial_scale, at
//   least 0.1 wide, is cut into group_size x group_size cells, with borders rounded outwards.
// Shapes: x (N, output_dim * group_size^2, H, W); RoIs (R, 5) with n, x1, y1, x2, y2 in pixels of
// the image; y (R, output_dim, group_size, group_size). A RoI with n = -1 gives zeros.
// Parameters: none.
// Gradient: each pixel of a cell gets dy divided by the cell's number of pixels; none for the RoIs.
#include "layers/vision/region_pooling.h"
#include "proto/params/forks_detection.pb.h"

namespace crema {
namespace {

class PsroiPoolingLayer : public RoiPoolingBase {
 public:
  static constexpr LayerFacts facts = {.kind = LayerKind::pooling, .regions = 5};

 private:
  const PSROIPoolingParameter& p() const { return params<PSROIPoolingParameter>(); }

  RoiPool read() const override {
    require(p().group_size() > 0 && p().output_dim() > 0,
            "group_size and output_dim must be positive, but are ", p().group_size(), " and ",
            p().output_dim());
    return {RoiPoolKind::mean, p().group_size(), p().group_size(), p().spatial_scale()};
  }
  int64_t top_channels(int64_t channels) const override {
    const int64_t cells = int64_t{p().group_size()} * p().group_size();
    require(channels == p().output_dim() * cells,
            "the feature map must have output_dim * group_size^2 = ", p().output_dim() * cells,
            " channels, but has ", channels);
    return p().output_dim();
  }
};

}  // namespace
REGISTER_LAYER(PSROIPooling, PsroiPoolingLayer);
}  // namespace crema

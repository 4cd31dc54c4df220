// RegionPooling: ROIPooling on a frame: the outer box of a RoI without the interior of its inner
// box (multi-region detection, LocNet).
//   y[r,c,i,j] = max(0, x[n,c,h,w] over the cell without pixels inside the inner box)
//   Corners are moved by 1 + offset (x1, y1) or 1 - offset (x2, y2) pixels, times spatial_scale,
//   and rounded inwards; the outer box is cut into pooled_h x pooled_w cells with borders rounded
//   outwards. Pixels on the border of the inner box count.
// Shapes: x (N, C, H, W); RoIs (R, 9) with n, x1, y1, x2, y2 of the outer box and the same of the
// inner one, in pixels of the image; y (R, C, pooled_h, pooled_w). A RoI with n = -1 gives zeros.
// Parameters: none.
// Gradient: dy goes to the maximum's position; none for the RoIs.
#include "layers/vision/region_pooling.h"
#include "proto/params/forks_detection.pb.h"

namespace crema {
namespace {

class RegionPoolingLayer : public RoiPoolingBase {
 public:
  static constexpr LayerFacts facts = {
      .kind = LayerKind::pooling, .keeps_channels = true, .regions = 9};

 private:
  RoiPool read() const override {
    const auto& p = params<RegionPoolingParameter>();
    RoiPool pool{RoiPoolKind::ring, p.pooled_h(), p.pooled_w(), p.spatial_scale()};
    pool.offset = p.offset();
    return pool;
  }
};

}  // namespace
REGISTER_LAYER(RegionPooling, RegionPoolingLayer);
}  // namespace crema

// ROIPooling: the maximum of each cell of a grid on each RoI of a feature map (Fast R-CNN).
//   y[r,c,i,j] = max of x[n,c,h,w] over the cell, 0 where the cell is empty
//   The RoI's corners, times spatial_scale, are rounded to pixels of the map; its rows and columns
//   of pixels, at least one, are cut into pooled_h x pooled_w cells with borders rounded outwards.
//   pad_ratio first widens the RoI by that fraction of its size on each side.
// Shapes: x (N, C, H, W); RoIs (R, 5) with n, x1, y1, x2, y2 in pixels of the image; y (R, C,
// pooled_h, pooled_w). A RoI with n = -1 gives zeros.
// Parameters: none.
// Gradient: dy goes to the maximum's position; none for the RoIs.
#include "layers/vision/region_pooling.h"
#include "proto/params/forks_detection.pb.h"

namespace crema {
namespace {

class RoiPoolingLayer : public RoiPoolingBase {
  RoiPool read() const override { return pool_of(RoiPoolKind::max, params<ROIPoolingParameter>()); }
};

}  // namespace
REGISTER_LAYER(ROIPooling, RoiPoolingLayer);
}  // namespace crema

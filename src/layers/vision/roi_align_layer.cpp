// ROIAlign: samples RoIs of a feature map by bilinear interpolation, without rounding their
// coordinates. Two forks use this name for different layers:
//   with roi_align_param (Mask R-CNN)      the RoI times spatial_scale, at least 1 x 1, is cut
//     into pooled_h x pooled_w cells; y is the mean of sampling_ratio x sampling_ratio points in
//     the middle of equal parts of a cell (if 0, as many as the cell has pixels along each side,
//     rounded up)
//   with roi_pooling_param (Cascade R-CNN)    y is the value at the corners of the cells,
//     (pooled_h + 1) x (pooled_w + 1) points, which an average Pooling turns into cells
// pad_ratio first widens the RoI by that share of its size on each side. Values are interpolated
// from the four pixels around a point; outside of the map they are 0.
// Shapes: x (N, C, H, W); RoIs (R, 5) with n, x1, y1, x2, y2 in pixels of the image; y (R, C, rows,
// columns). A RoI with n = -1 gives zeros.
// Parameters: none.
// Gradient: dx is the sum of dy times each pixel's interpolation weight; none for the RoIs.
#include "layers/vision/region_pooling.h"
#include "proto/params/forks_detection.pb.h"

namespace crema {
namespace {

class RoiAlignLayer : public RoiPoolingBase {
  RoiPool read() const override {
    if (!has_params<ROIPoolingParameter>()) {
      const auto& p = params<ROIAlignParameter>();
      require(p.sampling_ratio() >= -1 && p.sampling_ratio() <= 64,
              "sampling_ratio must be 0 to 64 points, but is ", p.sampling_ratio());
      RoiPool pool = pool_of(RoiPoolKind::samples, p);
      pool.samples = p.sampling_ratio();
      return pool;
    }
    require(!has_params<ROIAlignParameter>(),
            "roi_align_param makes this the layer of Mask R-CNN, roi_pooling_param that of Cascade "
            "R-CNN: give one of them");
    RoiPool pool = pool_of(RoiPoolKind::corners, params<ROIPoolingParameter>());
    if (pool.rows > 0) ++pool.rows;
    if (pool.columns > 0) ++pool.columns;
    return pool;
  }
};

}  // namespace
REGISTER_LAYER(ROIAlign, RoiAlignLayer);
}  // namespace crema

// RoI pooling: each region of interest of a feature map becomes a grid of cells, and each cell one
// value per channel.
//   max        the maximum over a cell whose borders are rounded outwards (Fast R-CNN)
//   ring       the same without the interior of an inner box, and at least 0
//   mean       the mean of a cell, each cell from its own channels: of channel c of y, cell
//              (i, j) reads channel (c * rows + i) * columns + j of x (R-FCN)
//   samples    the mean of points inside a cell, interpolated bilinearly (Mask R-CNN)
//   corners    one interpolated point for each corner of the cells (Cascade R-CNN)
// Shapes: x (N, C, H, W); rois one row each: image, x1, y1, x2, y2 and, for rings, the corners of
// the inner box, in pixels of the image; y (R, C', rows, columns). x and y NCHW or channels-last.
// An RoI of image -1 is padding: it gives zeros and no gradient.
#pragma once

#include "tensor/tensor.h"

namespace crema {

enum class RoiPoolKind { max, ring, mean, samples, corners };

struct RoiPool {
  RoiPoolKind kind = RoiPoolKind::max;
  int64_t rows = 1, columns = 1;  // of y
  float scale = 1;                // size of the feature map over size of the image
  float margin = 0;               // on each side, as a fraction of the RoI; max, samples, corners
  // Ring: before scaling, 1 + offset is added to x1 and y1, and 1 - offset to x2 and y2.
  float offset = 0;
  int64_t samples = 0;  // along each side of a cell; 0: one per position of the map

  int64_t numbers() const { return kind == RoiPoolKind::ring ? 9 : 5; }  // values per RoI
  bool has_index() const { return kind == RoiPoolKind::max || kind == RoiPoolKind::ring; }
};

// Bytes of the tables of cells that forward leaves for backward.
size_t roi_pool_tables(const RoiPool& pool, const Shape& x, int64_t rois);

// Writes y; index, i32 like y, the position h * W + w of each maximum or -1 (empty without
// has_index()); and tables, u8. rois: float32 or float64. An RoI of an image that x does not have
// is an Error on the CPU; on a GPU it counts as image -1.
void roi_pool_forward(Context& context, const RoiPool& pool, const Tensor& x, const Tensor& rois,
                      const Tensor& y, const Tensor& index, const Tensor& tables);
// dx is overwritten: each element gathers its gradients in the order of the RoIs.
void roi_pool_backward(Context& context, const RoiPool& pool, const Tensor& index, const Tensor& dy,
                       const Tensor& dx, const Tensor& tables);

}  // namespace crema

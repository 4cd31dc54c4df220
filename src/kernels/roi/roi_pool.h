// Pooling of regions: each region of a feature map becomes a grid of cells, and each cell one
// number a channel.
//   max        the largest value of a cell whose borders are rounded outwards (Fast R-CNN)
//   ring       the same without what lies inside an inner box, and at least 0
//   mean       the mean of a cell, each cell from channels of its own: of channel c of y, cell
//              (i, j) reads channel (c * rows + i) * columns + j of x (R-FCN)
//   samples    the mean of points inside a cell, interpolated bilinearly (Mask R-CNN)
//   corners    one interpolated point for each corner of the cells (Cascade R-CNN)
// Shapes: x (N, C, H, W); regions as many rows of image, x1, y1, x2, y2 and, of rings, the inner
// box's corners, in pixels of the image; y (R, C', rows, columns). x and y plain or channels-last.
// A region of image -1 is none: it gives zeros and no gradient.
#pragma once

#include "tensor/tensor.h"

namespace crema {

enum class RegionKind { max, ring, mean, samples, corners };

struct RegionPool {
  RegionKind kind = RegionKind::max;
  int64_t rows = 1, columns = 1;  // of y
  float scale = 1;                // size of the feature map by size of the image
  float margin = 0;               // on each side, as a share of the region; max, samples, corners
  float offset = 0;               // ring: added to the corners before they are scaled
  int64_t samples = 0;            // along each side of a cell; 0: one for each place of the map

  int64_t numbers() const { return kind == RegionKind::ring ? 9 : 5; }  // of a region
  bool has_index() const { return kind == RegionKind::max || kind == RegionKind::ring; }
};

// Bytes of what forward leaves for backward about where the regions' cells lie.
size_t region_pool_tables(const RegionPool& pool, const Shape& x, int64_t regions);

// Written: y; index, i32 like y, the place h * W + w of each maximum or -1, empty without
// has_index(); tables, u8. regions: float32 or float64. Error on the CPU for a region of an image
// that x does not have; on a GPU it is as image -1.
void region_pool_forward(Context& context, const RegionPool& pool, const Tensor& x,
                         const Tensor& regions, const Tensor& y, const Tensor& index,
                         const Tensor& tables);
// dx is overwritten: each element gathers what reached it, in the order of the regions.
void region_pool_backward(Context& context, const RegionPool& pool, const Tensor& index,
                          const Tensor& dy, const Tensor& dx, const Tensor& tables);

}  // namespace crema

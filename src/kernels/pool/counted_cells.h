// The divisor of the mean is the product, over the axes, of these cells of a window.
#pragma once

#include "base/host_device.h"

namespace crema {

// Cells of a window along an axis that count for the mean: Caffe clips a window to the padded
// image, or to the image itself when padding does not count. at: the position of the window's first
// cell; extent: of the image. 0 or less for a window that is empty then.
template <typename Int>
CREMA_HD Int counted_cells(Int at, Int kernel, Int extent, Int pad, bool count_padding) {
  const Int end = at + kernel, padded = extent + pad;
  return count_padding ? (end < padded ? end : padded) - at
                       : (end < extent ? end : extent) - (at > 0 ? at : 0);
}

// The same with `dilation` positions from cell to cell.
template <typename Int>
CREMA_HD Int counted_cells(Int at, Int kernel, Int extent, Int pad, bool count_padding,
                           Int dilation) {
  const Int border = extent + (count_padding ? pad : 0);
  const Int first = count_padding || at >= 0 ? 0 : (dilation - 1 - at) / dilation;
  const Int end = border > at ? (border - at + dilation - 1) / dilation : 0;
  return (end < kernel ? end : kernel) - first;
}

}  // namespace crema

// The arithmetic of pooling windows, shared by all implementations. There are always three spatial
// axes: depth, height, width; an axis that the tensor lacks has extent 1.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/pool/counted_cells.h"
#include "kernels/pool/pool.h"

namespace crema {

struct PoolGeometry {
  int64_t images, channels;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3];
  bool channels_last, count_padding;

  // x: the input's shape (N, C, one to three spatial axes), y: the output's.
  PoolGeometry(const PoolWindow& window, const Tensor& x, const Tensor& y);

  int64_t cells() const { return kernel[0] * kernel[1] * kernel[2]; }

  // Input positions [input_begin, input_end) of output position o along an axis, clipped to the
  // image.
  CREMA_HD int64_t input_begin(int axis, int64_t o) const {
    const int64_t at = o * stride[axis] - pad[axis];
    return at > 0 ? at : 0;
  }
  CREMA_HD int64_t input_end(int axis, int64_t o) const {
    const int64_t at = o * stride[axis] - pad[axis] + kernel[axis];
    return at < in[axis] ? at : in[axis];
  }
  // Output positions [output_begin, output_end) whose windows contain input position i.
  CREMA_HD int64_t output_begin(int axis, int64_t i) const {
    const int64_t at = i + pad[axis] - kernel[axis];
    return at < 0 ? 0 : at / stride[axis] + 1;
  }
  CREMA_HD int64_t output_end(int axis, int64_t i) const {
    const int64_t at = (i + pad[axis]) / stride[axis] + 1;
    return at < out[axis] ? at : out[axis];
  }
  // Index of input position i in the unclipped window of output position o.
  CREMA_HD int64_t offset_in_window(int axis, int64_t o, int64_t i) const {
    return i - (o * stride[axis] - pad[axis]);
  }

  CREMA_HD int64_t counted(int axis, int64_t o) const {
    return counted_cells(o * stride[axis] - pad[axis], kernel[axis], in[axis], pad[axis],
                         count_padding);
  }
  // An empty window has divisor 1, so its mean is 0.
  CREMA_HD int64_t divisor(int64_t od, int64_t oh, int64_t ow) const {
    const int64_t a = counted(0, od), b = counted(1, oh), c = counted(2, ow);
    return a > 0 && b > 0 && c > 0 ? a * b * c : 1;
  }
};

}  // namespace crema

// Iteration over images (N, C, H, W) with parallel_rows(), in either order. Row-major: a row of the
// loop is a row of a plane; channels-last: a row of the loop is a pixel, its columns are the
// channels.
#pragma once

#include "base/host_device.h"
#include "tensor/tensor.h"

namespace crema {

struct ImagePosition {
  int64_t plane, channel, h, w;  // plane: image and channel; channels-last: only the image
};

template <bool kLast>
struct ImageGrid {
  int64_t height, width, channels;

  explicit ImageGrid(const Shape& shape) : height(shape[2]), width(shape[3]), channels(shape[1]) {}
  // Extents of the loop.
  static int64_t rows(const Shape& shape) {
    return kLast ? shape[0] * shape[2] * shape[3] : shape.count(0, 3);
  }
  static int64_t columns(const Shape& shape) { return kLast ? shape[1] : shape[3]; }

  CREMA_HD ImagePosition position(int64_t row, int64_t column) const {
    const int64_t w = kLast ? row % width : column, line = kLast ? row / width : row;
    return {line / height, kLast ? column : 0, line % height, w};
  }
  // The offset, in elements, of row h, column w in the plane and channel of p.
  CREMA_HD int64_t offset(const ImagePosition& p, int64_t h, int64_t w) const {
    const int64_t pixel = (p.plane * height + h) * width + w;
    return kLast ? pixel * channels + p.channel : pixel;
  }
};

// Calls body<kLast>() for the order of the image.
template <typename Body>
void with_order_of(const Tensor& image, const Body& body) {
  if (image.format().order == Order::channels_last) {
    body.template operator()<true>();
  } else {
    body.template operator()<false>();
  }
}

}  // namespace crema

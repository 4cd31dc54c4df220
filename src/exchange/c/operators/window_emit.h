// Windows of convolutions and poolings, as the C structure window describes them.
#pragma once

#include <string>
#include <vector>

#include "exchange/c/operator_emit.h"

namespace crema {

// Depth, height and width; axes that a value lacks are in front, with extent 1.
struct CWindow {
  std::vector<int64_t> in, out, kernel, stride, pad, dilation;

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  // One tap at each position of the image. Then it may be one row.
  bool is_point() const;
  CWindow joined() const;
  int64_t positions() const { return out[0] * out[1] * out[2]; }
  // The value of a field `window`.
  std::string text() const;
  // The fields of a structure that is one.
  CFields fields() const;
};

// Whether depthwise.c and depthwise_int8.c compute a convolution with so many channels in a group.
bool is_depthwise(const CWindow& window, int64_t channels);

// The rows of an image that these have in memory, with their padding, in elements.
struct DepthwiseRing {
  int64_t span, step, size;

  explicit DepthwiseRing(const CWindow& window);
};

// Reads kernel_shape, strides, pads and dilations of an operator on an image of this shape (N, C, axes).
// The extents `out` are those of Conv and the poolings.
CWindow read_window(const OperatorEmit& op, const Shape& x, std::vector<int64_t> kernel);

// The shape of a value with so many samples, channels and these extents, as many as x has.
Shape image_shape(const Shape& x, int64_t channels, const std::vector<int64_t>& extents);

}  // namespace crema

// How the elements of a tensor lie in memory: order, padding and blocks. Shapes always speak of the
// logical axes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/shape.h"

namespace crema {

enum class Order : uint8_t {
  plain,          // row-major as Caffe: N, C, H, W
  channels_last,  // N, H, W, C (axis 1 fastest); the same as plain below three axes
  blocked,        // what a library's kernel wants for its weights: see Blocking
};

// A blocked layout: outer blocks at `strides`, inner blocks dense, outermost first (oneDNN's
// description).
struct Blocking {
  std::vector<int64_t> padded_dims;
  std::vector<int64_t> strides;  // of the outer blocks, in elements
  std::vector<int64_t> inner_sizes;
  std::vector<int> inner_axes;
  bool operator==(const Blocking&) const = default;
};

struct Format {
  Order order = Order::plain;
  std::shared_ptr<const Blocking> blocking;  // only for Order::blocked
  // Channels-last: extent of axis 1 in memory where that is larger than in the shape; what is
  // behind the shape's channels is zero. 0: no padding.
  int64_t channels = 0;
  // Channels-last of a matrix (O, C * points), whose columns are channels-major in the shape and
  // points-major in memory: weights of a fully connected layer that reads channels-last images. 0:
  // columns lie as they are.
  int64_t points = 0;

  static Format plain() { return {}; }
  static Format channels_last() { return {Order::channels_last, nullptr, 0}; }

  // Elements in memory, padding included.
  int64_t elements(const Shape& shape) const;
  // Where the element with these logical coordinates lies, in elements.
  int64_t offset(const Shape& shape, const int64_t* index) const;
  bool operator==(const Format& other) const;
};

// True when both lay out this shape alike (channels-last of a 2-axis shape is plain).
bool same_layout(const Format& a, const Format& b, const Shape& shape);

}  // namespace crema

// Format: the memory layout of a tensor: order, padding and blocks. Shapes always list the logical
// axes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema {

enum class Order : uint8_t {
  row_major,      // row-major as in Caffe: N, C, H, W
  channels_last,  // N, H, W, C (axis 1 fastest); same as row_major below three axes
  blocked,        // the weight layout of a library's kernel: see Blocking
};

// A blocked layout as oneDNN describes it: outer blocks at `strides`, dense inner blocks, outermost
// first.
struct Blocking {
  std::vector<int64_t> padded_dims;
  std::vector<int64_t> strides;  // of the outer blocks, in elements
  std::vector<int64_t> inner_sizes;
  std::vector<int> inner_axes;
  bool operator==(const Blocking&) const = default;
};

struct Format {
  Order order = Order::row_major;
  std::shared_ptr<const Blocking> blocking;  // only for Order::blocked
  // Channels-last: the extent of axis 1 in memory if it is larger than in the shape; the padding
  // channels are zero. 0: no padding.
  int64_t channels = 0;
  // Channels-last of a matrix (O, C * points), whose columns are channel-major in the shape and
  // point-major in memory: the weights of a fully connected layer that reads channels-last images.
  // 0: the columns keep the order of the shape.
  int64_t points = 0;

  static Format row_major() { return {}; }
  static Format channels_last() { return {Order::channels_last, nullptr, 0}; }

  // Elements in memory, padding included.
  int64_t elements(const Shape& shape) const;
  // Offset in elements of the element with these logical coordinates.
  int64_t offset(const Shape& shape, const int64_t* index) const;
  // A text that is equal for equal formats.
  std::string str() const;
  bool operator==(const Format& other) const;
};

// True if both formats lay out this shape alike (channels-last with 2 axes equals row-major).
bool same_layout(const Format& a, const Format& b, const Shape& shape);

}  // namespace crema

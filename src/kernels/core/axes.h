// Coordinates along any number of spatial axes, for kernels that support every shape and order.
#pragma once

#include "base/host_device.h"
#include "tensor/format.h"
#include "tensor/shape.h"

namespace crema {

constexpr int kMaxSpatialAxes = 6;

// Strides, in elements, of an (images or outputs, channels, spatial...) tensor.
struct AxisStrides {
  int64_t outer = 0, channel = 0;
  int64_t axis[kMaxSpatialAxes] = {};
};

// The strides of a tensor with at least two axes, in either order.
inline AxisStrides strides_of(const Shape& shape, Order order) {
  AxisStrides s;
  const int axes = shape.axes() - 2;
  const bool last = order == Order::channels_last;
  int64_t stride = last ? shape[1] : 1;
  for (int axis = axes - 1; axis >= 0; --axis) {
    s.axis[axis] = stride;
    stride *= shape[axis + 2];
  }
  s.channel = last ? 1 : stride;
  s.outer = shape.count(1);
  return s;
}

struct AxisPosition {
  int64_t outer, channel;
  int64_t at[kMaxSpatialAxes];
};

// The logical coordinates of element i of a row-major tensor (outer, channels, extents[axes]).
CREMA_HD inline AxisPosition position_of(int64_t i, int axes, const int64_t* extents,
                                         int64_t channels) {
  AxisPosition p;
  for (int axis = axes - 1; axis >= 0; --axis) {
    p.at[axis] = i % extents[axis];
    i /= extents[axis];
  }
  p.channel = i % channels;
  p.outer = i / channels;
  return p;
}

// The offset, in elements, of a position in a tensor with these strides.
CREMA_HD inline int64_t offset_of(const AxisPosition& p, const AxisStrides& s, int axes) {
  int64_t at = p.outer * s.outer + p.channel * s.channel;
  for (int axis = 0; axis < axes; ++axis) at += p.at[axis] * s.axis[axis];
  return at;
}

// Steps `index` through a box of `extents`, the last axis fastest; false after the last position.
CREMA_HD inline bool next_position(int64_t* index, const int64_t* extents, int axes) {
  for (int axis = axes - 1; axis >= 0; --axis) {
    if (++index[axis] < extents[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

}  // namespace crema

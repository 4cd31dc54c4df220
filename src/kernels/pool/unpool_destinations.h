// Where unpooling puts its values, and its implementations.
#pragma once

#include <type_traits>

#include "base/host_device.h"
#include "kernels/core/divisor.h"
#include "kernels/core/kernel_registry.h"
#include "kernels/pool/unpool.h"

namespace crema {

// For an x, and a dx, that is not empty.
extern KernelsOf<decltype(unpool)> unpool_kernels;
extern KernelsOf<decltype(unpool_gradient)> unpool_gradient_kernels;

template <typename T>
using UnpoolMask = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Maps values to the elements of y that the mask names. A row is a plane or, in channels-last
// order, an image.
template <typename T>
struct UnpoolDestinations {
  const UnpoolMask<T>* mask;
  int64_t channels, positions, columns;  // channels: 1 in NCHW order
  Divisor each;                          // by the number of channels
  CREMA_HD int64_t source(int64_t row, int64_t column) const { return row * columns + column; }
  // On a GPU. -1: none.
  CREMA_HD int64_t destination_of(int64_t row, int64_t column) const {
    const int64_t position = static_cast<int64_t>(mask[source(row, column)]);
    if (position < 0 || position >= positions) return -1;
    uint32_t channel = static_cast<uint32_t>(column);
    each.split(channel);
    return (row * positions + position) * channels + channel;
  }
};

// The rows of x or mask, and the channels that are adjacent in a row.
struct UnpoolRows {
  int64_t count, channels;
  static UnpoolRows of(const Tensor& x) {
    const Shape& shape = x.shape();
    const bool last = x.format().order == Order::channels_last;
    return last ? UnpoolRows{shape[0], shape[1]} : UnpoolRows{shape.count(0, 2), 1};
  }
};

template <typename T>
UnpoolDestinations<T> destinations_of(const Tensor& mask, const Tensor& y) {
  const UnpoolRows rows = UnpoolRows::of(mask);
  return {mask.data<UnpoolMask<T>>(), rows.channels, y.shape().count(2), mask.count() / rows.count,
          Divisor(rows.channels)};
}

}  // namespace crema

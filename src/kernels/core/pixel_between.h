// A position between the pixels of a plane, and what is read there. For .cu files only, like
// device/parallel.h.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace crema {

// Bilinear, from the four pixels around a position; in the last row and column from two or one.
template <typename T>
struct PixelBetween {
  int64_t top, bottom, left, right;  // rows and columns
  T down, across;                    // position between them, 0 to 1
  bool inside;

  CREMA_HD PixelBetween(T row, T column, int64_t height, int64_t width)
      : top(0), bottom(0), left(0), right(0), down(0), across(0), inside(false) {
    if (!(row >= 0 && column >= 0 && row < static_cast<T>(height) &&
          column < static_cast<T>(width)))
      return;
    inside = true;
    top = static_cast<int64_t>(row);
    left = static_cast<int64_t>(column);
    bottom = top + 1 < height ? top + 1 : top;
    right = left + 1 < width ? left + 1 : left;
    down = row - static_cast<T>(top);
    across = column - static_cast<T>(left);
  }
  CREMA_HD T value(const T* plane, int64_t width) const {
    const T *upper = plane + top * width, *lower = plane + bottom * width;
    return (1 - down) * ((1 - across) * upper[left] + across * upper[right]) +
           down * ((1 - across) * lower[left] + across * lower[right]);
  }
  // Derivatives of the value.
  CREMA_HD T by_row(const T* plane, int64_t width) const {
    const T *upper = plane + top * width, *lower = plane + bottom * width;
    return (1 - across) * (lower[left] - upper[left]) + across * (lower[right] - upper[right]);
  }
  CREMA_HD T by_column(const T* plane, int64_t width) const {
    const T *upper = plane + top * width, *lower = plane + bottom * width;
    return (1 - down) * (upper[right] - upper[left]) + down * (lower[right] - lower[left]);
  }
  // Adds a value's gradient to that of the pixels it was read from.
  CREMA_HD void add(T* plane, int64_t width, T gradient) const {
    T *upper = plane + top * width, *lower = plane + bottom * width;
    upper[left] += (1 - down) * (1 - across) * gradient;
    upper[right] += (1 - down) * across * gradient;
    lower[left] += down * (1 - across) * gradient;
    lower[right] += down * across * gradient;
  }
};

}  // namespace crema

// The neighborhood of local response normalization in memory, shared by its implementations.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/core/kernel_registry.h"
#include "kernels/norm/lrn.h"

namespace crema {

// Two axes of an image, rows and columns, or only channels as columns (the first is then trivial).
// Element i has position (i / stride) % extent along each; the neighborhood extends `half` to both
// sides.
struct LrnGeometry {
  struct Axis {
    int64_t extent, stride, half;
    CREMA_HD int64_t at(int64_t i) const { return i / stride % extent; }
    // Signed steps to the first and the last neighbor inside the image.
    CREMA_HD int64_t before(int64_t i) const {
      const int64_t room = at(i);
      return room < half ? -room : -half;
    }
    CREMA_HD int64_t after(int64_t i) const {
      const int64_t room = extent - 1 - at(i);
      return room < half ? room : half;
    }
  };
  Axis rows{1, 1, 0}, columns;

  LrnGeometry(const LrnWindow& window, const Tensor& x) {
    const Shape& shape = x.shape();
    const int64_t half = window.size / 2, channels = shape[1];
    // One channel is both; kernels for channels-last tensors must find it.
    const bool last = channels == 1 || !same_layout(x.format(), Format::row_major(), shape);
    if (window.across_channels) {
      columns = {channels, last ? 1 : shape.count(2), half};
    } else {
      const int64_t step = last ? channels : 1;
      columns = {shape[3], step, half};
      rows = {shape[2], step * shape[3], half};
    }
  }
};

// The workspace has as many values as x, in Compute<x>.
extern KernelsOf<decltype(lrn_forward)> lrn_forward_kernels;
extern KernelsOf<decltype(lrn_backward)> lrn_backward_kernels;

}  // namespace crema

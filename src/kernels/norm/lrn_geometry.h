// The neighbourhood of local response normalization in memory, shared by its bodies.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/norm/lrn.h"

namespace crema {

// Two axes of an image, of which the first may be trivial: rows and columns, or just channels.
// Element i has position (i / stride) % extent on each; the neighbourhood reaches `half` to both
// sides.
struct LrnGeometry {
  struct Axis {
    int64_t extent, stride, half;
    CREMA_HD int64_t at(int64_t i) const { return i / stride % extent; }
    // First and last step that stay inside.
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
    const bool last = !same_layout(x.format(), Format::plain(), shape);
    const int64_t half = window.size / 2, channels = shape[1];
    if (window.across_channels) {
      columns = {channels, last ? 1 : shape.count(2), half};
    } else {
      const int64_t step = last ? channels : 1;
      columns = {shape[3], step, half};
      rows = {shape[2], step * shape[3], half};
    }
  }
};

// The body for every case and device; kernels/norm/lrn.cpp prefers its own CPU loops. `ratios` has
// the size of x.
void lrn_forward_plain(Context& context, const LrnWindow& window, const Tensor& x, const Tensor& y);
void lrn_backward_plain(Context& context, const LrnWindow& window, const Tensor& x,
                        const Tensor& dy, const Tensor& dx, void* ratios);

// GPU: across channels, channels-last. False: not served.
bool lrn_forward_gpu(Context& context, const LrnWindow& window, const Tensor& x, const Tensor& y);
bool lrn_backward_gpu(Context& context, const LrnWindow& window, const Tensor& x, const Tensor& dy,
                      const Tensor& dx);

}  // namespace crema

// The parameters of a convolution's case, in a form that a GPU can copy.
#pragma once

#include "base/host_device.h"
#include "kernels/conv/conv.h"

namespace crema {

struct ConvGeometry {
  int axes = 0;  // spatial
  int64_t images = 0, groups = 1;
  int64_t in_channels = 0, out_channels = 0;  // channels of one group
  int64_t in_points = 1, out_points = 1, taps = 1;
  int64_t in[kMaxSpatialAxes], out[kMaxSpatialAxes], kernel[kMaxSpatialAxes];
  int64_t stride[kMaxSpatialAxes], pad[kMaxSpatialAxes], dilation[kMaxSpatialAxes];

  CREMA_HD int64_t all_in_channels() const { return in_channels * groups; }
  CREMA_HD int64_t all_out_channels() const { return out_channels * groups; }
};
ConvGeometry geometry_of(const ConvCase& c);

}  // namespace crema

// ChannelMap: a layer that maps each channel (axis 1) by constants, as BatchNorm with stored
// statistics and Scale do.
#pragma once

namespace crema {

//   y = (x - mean) / sqrt(variance + eps) * scale + shift
// Each value is that of the channel in one of the layer's parameters, given by its index; -1: it has
// none, and mean is 0, sqrt(...) 1, scale 1, shift 0. Stored mean and variance are sums, to be
// divided by `factor` (0 for a factor of 0), if there is one.
struct ChannelMap {
  int mean = -1, variance = -1, factor = -1, scale = -1, shift = -1;
  float eps = 0;
  bool operator==(const ChannelMap&) const = default;
};

}  // namespace crema

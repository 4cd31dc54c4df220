// The memory layout of a fully connected layer's weights.
#pragma once

#include "layers/layer.h"

namespace crema {

// If samples are channels-last images, so are the weights' columns; otherwise row-major.
inline Format dense_weights_format(const Preparation& preparation) {
  const Shape& x = preparation.bottoms[0];
  const bool images = preparation.bottom_orders[0] == Order::channels_last && x.axes() >= 3;
  return images && x.count(2) > 1 ? Format{Order::channels_last, nullptr, 0, x.count(2)} : Format{};
}

}  // namespace crema

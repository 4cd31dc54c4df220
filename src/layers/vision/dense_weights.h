// How the weights of a fully connected layer lie.
#pragma once

#include "layers/layer.h"

namespace crema {

// Where samples are channels-last images, the weights' columns lie in their order; else plain.
inline Format dense_weights_format(const Preparation& preparation) {
  const Shape& x = preparation.bottoms[0];
  const bool images = preparation.bottom_orders[0] == Order::channels_last && x.axes() >= 3;
  return images && x.count(2) > 1 ? Format{Order::channels_last, nullptr, 0, x.count(2)} : Format{};
}

}  // namespace crema

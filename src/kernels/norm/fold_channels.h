// Multiplies maps of channels, y = x * factor + shift, into the weights and the bias of the layer
// before them.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// A map y = (x - mean) / sqrt(variance + eps) * scale + shift. Each tensor has a value per channel,
// or is empty: then mean and shift are 0, sqrt(...) and scale 1. Mean and variance are divided by
// the single value of `number` (0 where that is 0) unless it is empty.
struct ChannelValues {
  Tensor mean, variance, number, scale, shift;
  float eps = 0;
};

// The map that adds the bias: factors = 1, shifts = bias, or 0 where that is empty.
void begin_channel_map(Context& context, const Tensor& bias, const Tensor& factors,
                       const Tensor& shifts);
// Appends a map to factors and shifts (both C): x * factors + shifts becomes
// map(x * factors + shifts). float or double, all tensors alike.
void append_channel_map(Context& context, const ChannelValues& map, const Tensor& factors,
                        const Tensor& shifts);

// w[c, ...] *= factors[c], for row-major w (C, ...).
void scale_rows(Context& context, const Tensor& factors, const Tensor& w);

}  // namespace crema

// Adding a bias to each channel, with a ReLU behind it, and the gradients of both. The tensors are
// seen as outer x channels x inner; pointers lie on the context's device. T: float or double.
#pragma once

#include "device/context.h"

namespace crema {

struct Relu {
  bool on = false;
  float slope = 0;  // left of zero
};

// y += b per channel (b may be null), then the ReLU.
template <typename T>
void add_bias(Context& context, int64_t outer, int64_t channels, int64_t inner, const T* b,
              Relu relu, T* y);

// db[c] = (accumulate ? db[c] : 0) + the sum of dy over outer and inner.
template <typename T>
void bias_gradient(Context& context, int64_t outer, int64_t channels, int64_t inner, const T* dy,
                   T* db, bool accumulate);

// dy *= y > 0 ? 1 : slope, for a ReLU whose output is y; slope at least 0.
template <typename T>
void relu_gradient(Context& context, int64_t count, const T* y, float slope, T* dy);

}  // namespace crema

// Softmax along one axis: y = exp(x) / sum(exp(x)); dx = y * (dy - sum(dy * y)).
#pragma once

#include "base/host_device.h"
#include "tensor/tensor.h"

namespace crema {

// A tensor viewed as (outer, classes, inner) in memory.
struct SoftmaxView {
  int64_t outer = 1, classes = 1, inner = 1;

  // Supports channels-last for axis 1.
  static SoftmaxView of(const Shape& shape, const Format& format, int axis);
  // Each position has its own distribution over the classes.
  CREMA_HD int64_t positions() const { return outer * inner; }
};

// The tensors have the same layout; y may be x and dx may be dy.
void softmax_forward(Context& context, const SoftmaxView& view, const Tensor& x, const Tensor& y);
void softmax_backward(Context& context, const SoftmaxView& view, const Tensor& y, const Tensor& dy,
                      const Tensor& dx);

}  // namespace crema

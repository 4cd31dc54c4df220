#include "kernels/conv/conv_pooled.h"

namespace crema {

constinit KernelMakers<PooledConv, ConvCase> pooled_conv_kernels(
    "a convolution with pooling", "fused; the layer's tests compare it with its parts");

// Above this, a library's convolution followed by separate passes is faster.
constexpr double kMaxOperations = 4e9;

bool pooling_is_profitable(const Context& context, const ConvCase& c) {
  const double operations =
      2.0 * static_cast<double>(c.y.count()) * static_cast<double>(c.w.count(1));
  return context.device() == Device::gpu && is_half(c.dtype) && c.order == Order::channels_last &&
         c.groups == 1 && operations <= kMaxOperations;
}

}  // namespace crema

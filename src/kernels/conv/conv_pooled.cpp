#include "kernels/conv/conv_pooled.h"

namespace crema {

// Above this, a library's convolution followed by separate passes is faster.
constexpr double kMaxOperations = 4e9;

bool pooling_is_profitable(const Context& context, const ConvCase& c) {
  const double operations =
      2.0 * static_cast<double>(c.y.count()) * static_cast<double>(c.w.count(1));
  return context.device() == Device::gpu && is_half(c.dtype) && c.order == Order::channels_last &&
         c.groups == 1 && operations <= kMaxOperations;
}

std::unique_ptr<PooledConv> make_pooled_conv(Context& context, const ConvCase& c,
                                             std::string& reason) {
#ifdef CREMA_CUDA
  if (context.device() == Device::gpu) return make_pooled_conv_gpu(context, c, reason);
#else
  (void)context, (void)c;
#endif
  reason = "it needs a GPU";
  return nullptr;
}

}  // namespace crema

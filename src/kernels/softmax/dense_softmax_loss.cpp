#include "kernels/softmax/dense_softmax_loss.h"

#include "device/context.h"

namespace crema {

bool DenseSoftmaxLoss::worth_it(const Context& context) const {
  // Each row reads all weights; beyond this a matrix product is faster.
  constexpr int64_t kMostProducts = int64_t{4} << 20, kMostRows = 1024;
  return context.device() == Device::gpu && context.implementation.empty() && inputs % 4 == 0 &&
         rows > 0 && rows <= kMostRows && outputs <= kMostOutputs &&
         rows * inputs * outputs <= kMostProducts;
}

#ifndef CREMA_CUDA
// Nobody calls them where it is not worth it.
void DenseSoftmaxLoss::forward(Context&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                               const Tensor&, const Tensor&) const {}
void DenseSoftmaxLoss::backward(Context&, const Tensor&, const Tensor&, const Tensor&,
                                const Tensor&, const Tensor&, const Tensor&, const Tensor&) const {}
void DenseSoftmaxLoss::backward_parameters(Context&, const Tensor&, const Tensor&, const Tensor&,
                                           const Tensor&, bool, bool) const {}
#endif

}  // namespace crema

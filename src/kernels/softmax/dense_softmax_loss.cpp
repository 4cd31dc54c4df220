#include "kernels/softmax/dense_softmax_loss.h"

#include "kernels/core/implementation.h"

namespace crema {

bool DenseSoftmaxLoss::is_profitable(const Context& context) const {
  // Each row reads all weights; beyond this limit a GEMM is faster.
  constexpr int64_t kMaxProducts = int64_t{4} << 20, kMaxRows = 1024;
  return allows_fusion(context) && inputs % 4 == 0 && rows > 0 && rows <= kMaxRows &&
         outputs <= kMaxOutputs && rows * inputs * outputs <= kMaxProducts;
}

#ifndef CREMA_CUDA
// Never called where is_profitable() is false.
void DenseSoftmaxLoss::forward(Context&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                               const Tensor&, const Tensor&) const {}
void DenseSoftmaxLoss::backward(Context&, const Tensor&, const Tensor&, const Tensor&,
                                const Tensor&, const Tensor&, const Tensor&, const Tensor&) const {}
void DenseSoftmaxLoss::backward_parameters(Context&, const Tensor&, const Tensor&, const Tensor&,
                                           const Tensor&, bool, bool) const {}
#endif

}  // namespace crema

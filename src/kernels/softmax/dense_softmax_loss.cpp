#include "kernels/softmax/dense_softmax_loss.h"

namespace crema {
namespace {

constexpr const char* kComparedWithParts = "fused; the layer's tests compare it with its parts";

}  // namespace

constinit decltype(dense_softmax_loss_kernels) dense_softmax_loss_kernels("a classifier's loss",
                                                                          kComparedWithParts);
constinit decltype(dense_softmax_loss_gradient_kernels) dense_softmax_loss_gradient_kernels(
    "the gradient of a classifier's loss", kComparedWithParts);
constinit decltype(dense_softmax_loss_parameters_kernels) dense_softmax_loss_parameters_kernels(
    "the parameter gradients of a classifier's loss", kComparedWithParts);

bool DenseSoftmaxLoss::is_profitable(const Context& context) const {
  // Each row reads all weights; beyond this limit a GEMM is faster.
  constexpr int64_t kMaxProducts = int64_t{4} << 20, kMaxRows = 1024;
  return allows_fusion(context) && inputs % 4 == 0 && rows > 0 && rows <= kMaxRows &&
         outputs <= kMaxOutputs && rows * inputs * outputs <= kMaxProducts;
}

void dense_softmax_loss(Context& context, const DenseSoftmaxLoss& c, const Tensor& x,
                        const Tensor& w, const Tensor& b, const Tensor& labels, const Tensor& loss,
                        const Tensor& note) {
  dense_softmax_loss_kernels.run(context, c, x, w, b, labels, loss, note);
}

void dense_softmax_loss_gradient(Context& context, const DenseSoftmaxLoss& c, const Tensor& x,
                                 const Tensor& w, const Tensor& b, const Tensor& labels,
                                 const Tensor& d_loss, const Tensor& ds, const Tensor& dx) {
  dense_softmax_loss_gradient_kernels.run(context, c, x, w, b, labels, d_loss, ds, dx);
}

void dense_softmax_loss_parameters(Context& context, const DenseSoftmaxLoss& c, const Tensor& x,
                                   const Tensor& ds, const Tensor& dw, const Tensor& db,
                                   bool accumulate_w, bool accumulate_b) {
  dense_softmax_loss_parameters_kernels.run(context, c, x, ds, dw, db, accumulate_w, accumulate_b);
}

}  // namespace crema

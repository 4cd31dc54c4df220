// The operations that fuse batch normalization with its neighbors. Their only implementations are in
// files of CUDA builds.
#include "kernels/norm/batch_norm_pair.h"
#include "kernels/norm/batch_norm_pool.h"
#include "kernels/pool/pool_kernels.h"

namespace crema {
namespace {

constexpr const char* kComparedWithParts = "fused; the layer's tests compare it with its parts";

}  // namespace

constinit decltype(batch_norm_pair_forward_kernels) batch_norm_pair_forward_kernels(
    "a pair of batch normalizations", kComparedWithParts);
constinit decltype(batch_norm_pair_recompute_kernels) batch_norm_pair_recompute_kernels(
    "the recomputation of a pair of batch normalizations", kComparedWithParts);
constinit decltype(batch_norm_pair_backward_kernels) batch_norm_pair_backward_kernels(
    "the gradient of a pair of batch normalizations", kComparedWithParts);

void batch_norm_pair_forward(Context& context, const BatchNormCase& c, const BatchNormSide& a,
                             const BatchNormSide& b, const Tensor& y, const Tensor& workspace) {
  batch_norm_pair_forward_kernels.run(context, c, a, b, y, workspace);
}

void batch_norm_pair_recompute(Context& context, const BatchNormCase& c, const BatchNormSide& a,
                               const BatchNormSide& b, const Tensor& y, const Tensor& workspace) {
  batch_norm_pair_recompute_kernels.run(context, c, a, b, y, workspace);
}

void batch_norm_pair_backward(Context& context, const BatchNormCase& c, const BatchNormSide& a,
                              const BatchNormSide& b, const Tensor& dy, const Tensor& more_dy,
                              const BatchNormGradients& of_a, const BatchNormGradients& of_b,
                              const Tensor& workspace) {
  batch_norm_pair_backward_kernels.run(context, c, a, b, dy, more_dy, of_a, of_b, workspace);
}

constinit decltype(batch_norm_pool_forward_kernels) batch_norm_pool_forward_kernels(
    "batch normalization with pooling", kComparedWithParts);
constinit decltype(batch_norm_pool_backward_kernels) batch_norm_pool_backward_kernels(
    "the gradient of batch normalization with pooling", kComparedWithParts);

bool batch_norm_pool_supports(const Context& context, const BatchNormPoolCase& c, DType dtype) {
  const int64_t count = c.norm.view.count();
  return batch_norm_takes_packs(context, c.norm, dtype) && count > 0 &&
         count < (int64_t{1} << 31) && with_walk(c.window, []<int, int>() {});
}

void batch_norm_pool_forward(Context& context, const BatchNormPoolCase& c,
                             const BatchNormParameters& parameters, const Tensor& x,
                             const Tensor& sums, const Tensor& y, const BatchNormPoolSaved& saved,
                             const Tensor& workspace) {
  batch_norm_pool_forward_kernels.run(context, c, parameters, x, sums, y, saved, workspace);
}

void batch_norm_pool_backward(Context& context, const BatchNormPoolCase& c,
                              const BatchNormParameters& parameters, const Tensor& x,
                              const Tensor& dy, const Tensor& more_dy,
                              const BatchNormPoolSaved& saved, const BatchNormGradients& gradients,
                              const Tensor& workspace) {
  batch_norm_pool_backward_kernels.run(context, c, parameters, x, dy, more_dy, saved, gradients,
                                       workspace);
}

}  // namespace crema

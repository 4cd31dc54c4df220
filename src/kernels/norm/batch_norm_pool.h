// Batch normalization, ReLU and max pooling:
//   y = max over each window of relu(norm(x))    norm(x) = (x - mean) * inverse * scale + shift
// The first stage of a residual network. The normalized tensor, as large as x, is neither written
// nor read; its gradient is nonzero only at the positions that windows selected.
// Shapes: x (N, C, H, W), y (N, C, H', W'), channels-last.
#pragma once

#include "kernels/core/kernel_registry.h"
#include "kernels/norm/batch_norm.h"
#include "kernels/pool/pool.h"

namespace crema {

struct BatchNormPoolCase {
  BatchNormCase norm;
  PoolWindow window;
};

// Where batch_norm_takes_packs() for an x of this dtype, which has 1 to 2^31 - 1 elements, and the
// window is 3 stride 2, 3 stride 1 or 2 stride 2.
bool batch_norm_pool_supports(const Context& context, const BatchNormPoolCase& c, DType dtype);

// What forward leaves for backward.
struct BatchNormPoolSaved {
  BatchNormSaved norm;  // without signs
  Tensor index;         // as pool_forward() writes it, none where y is not positive
  Tensor kept;          // like y: the x that each window selected; empty when no backward follows
};

// Bytes: two values per channel.
inline size_t batch_norm_pool_workspace(const BatchNormCase& c) {
  return 2 * static_cast<size_t>(c.view.channels) * sizeof(float);
}
// sums: as in batch_norm_forward(). In a channel with factor 0 all results are equal; then the
// largest x is selected, not the first.
void batch_norm_pool_forward(Context& context, const BatchNormPoolCase& c,
                             const BatchNormParameters& parameters, const Tensor& x,
                             const Tensor& sums, const Tensor& y, const BatchNormPoolSaved& saved,
                             const Tensor& workspace);
// more_dy: a second part of dy, which is then overwritten with the sum; or empty.
void batch_norm_pool_backward(Context& context, const BatchNormPoolCase& c,
                              const BatchNormParameters& parameters, const Tensor& x,
                              const Tensor& dy, const Tensor& more_dy,
                              const BatchNormPoolSaved& saved, const BatchNormGradients& gradients,
                              const Tensor& workspace);

// Their implementations.
extern KernelsOf<decltype(batch_norm_pool_forward)> batch_norm_pool_forward_kernels;
extern KernelsOf<decltype(batch_norm_pool_backward)> batch_norm_pool_backward_kernels;

}  // namespace crema

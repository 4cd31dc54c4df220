// Two batch normalizations whose results are added, followed by a ReLU:
//   y = relu(norm(a.x) + norm(b.x))    norm(x) = (x - mean) * inverse * scale + shift
// The end of a residual block with a convolution on both branches. No normalized tensor is written
// and read back, and the gradient of the sum is read once for both. Only where
// batch_norm_takes_packs().
#pragma once

#include "kernels/core/kernel_registry.h"
#include "kernels/norm/batch_norm.h"

namespace crema {

// One of the two; both have the same case, with added and relu.
struct BatchNormSide {
  BatchNormParameters parameters;
  Tensor x, sums;  // sums: as in batch_norm_forward()
  BatchNormSaved saved;
};

// Bytes: two values per channel for each side.
inline size_t batch_norm_pair_workspace(const BatchNormCase& c) {
  return 4 * static_cast<size_t>(c.view.channels) * sizeof(float);
}
// a.saved.signs: those of y, or empty when no backward follows.
void batch_norm_pair_forward(Context& context, const BatchNormCase& c, const BatchNormSide& a,
                             const BatchNormSide& b, const Tensor& y, const Tensor& workspace);
// Recomputes y, bit for bit, from what forward saved.
void batch_norm_pair_recompute(Context& context, const BatchNormCase& c, const BatchNormSide& a,
                               const BatchNormSide& b, const Tensor& y, const Tensor& workspace);
// dy is overwritten with the gradient before the ReLU, and may share memory with one dx. more_dy: a
// second part of dy, or empty.
void batch_norm_pair_backward(Context& context, const BatchNormCase& c, const BatchNormSide& a,
                              const BatchNormSide& b, const Tensor& dy, const Tensor& more_dy,
                              const BatchNormGradients& of_a, const BatchNormGradients& of_b,
                              const Tensor& workspace);

// Their implementations.
extern KernelsOf<decltype(batch_norm_pair_forward)> batch_norm_pair_forward_kernels;
extern KernelsOf<decltype(batch_norm_pair_recompute)> batch_norm_pair_recompute_kernels;
extern KernelsOf<decltype(batch_norm_pair_backward)> batch_norm_pair_backward_kernels;

}  // namespace crema

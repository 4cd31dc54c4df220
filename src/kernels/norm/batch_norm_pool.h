// Batch normalization, ReLU and max pooling, where fused kernels compute all of it:
//   y = max over each window of relu(norm(x))    norm(x) = (x - mean) * inverse * scale + shift
// The first stage of a residual network. The normalized tensor, as large as x, is neither written
// nor read; its gradient is nonzero only at the positions that windows selected.
#pragma once

#include <memory>

#include "kernels/norm/batch_norm.h"
#include "kernels/pool/pool.h"

namespace crema {

// What forward leaves for backward.
struct BatchNormPoolSaved {
  BatchNormSaved norm;  // without signs
  Tensor index;         // as pool_forward() writes it, none where y is not positive
  Tensor kept;          // like y: the x that each window selected; empty when no backward follows
};

class BatchNormPool {
 public:
  virtual ~BatchNormPool() = default;
  virtual size_t workspace() const = 0;
  // sums: as in batch_norm_forward(). In a channel with factor 0 all results are equal; then the
  // largest x is selected, not the first.
  virtual void forward(Context& context, const BatchNormParameters& parameters, const Tensor& x,
                       const Tensor& sums, const Tensor& y, const BatchNormPoolSaved& saved,
                       const Tensor& workspace) = 0;
  // more_dy: a second part of dy, which is then overwritten with the sum; or empty.
  virtual void backward(Context& context, const BatchNormParameters& parameters, const Tensor& x,
                        const Tensor& dy, const Tensor& more_dy, const BatchNormPoolSaved& saved,
                        const BatchNormGradients& gradients, const Tensor& workspace) = 0;
};

// For x and y of shapes (N, C, H, W), channels-last; dtype: of x. Null where
// batch_norm_takes_packs() is false, where x has no elements or 2^31 and more, and where the window
// is none of 3 stride 2, 3 stride 1 and 2 stride 2.
std::unique_ptr<BatchNormPool> make_batch_norm_pool(const Context& context, const BatchNormCase& c,
                                                    const PoolWindow& window, DType dtype);
// Only in a CUDA build.
std::unique_ptr<BatchNormPool> make_batch_norm_pool_gpu(const BatchNormCase& c,
                                                        const PoolWindow& window);

}  // namespace crema

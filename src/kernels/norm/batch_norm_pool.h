// Batch normalization, ReLU and max pooling as one, where kernels do all of it together:
//   y = max over each window of relu(norm(x))    norm(x) = (x - mean) * inverse * scale + shift
// The first stage of a residual network. What is normalized is as large as x and is neither written
// nor read again; of its gradient only the places that windows kept are not 0.
#pragma once

#include <memory>

#include "kernels/norm/batch_norm.h"
#include "kernels/pool/pool.h"

namespace crema {

// What forward leaves for backward.
struct BatchNormPoolSaved {
  BatchNormSaved norm;  // without signs
  Tensor index;         // as pool_forward() writes it, none where y is not positive
  Tensor kept;          // like y: the x that each window kept; empty where no backward follows
};

class BatchNormPool {
 public:
  virtual ~BatchNormPool() = default;
  virtual size_t workspace() const = 0;
  // sums: as batch_norm_forward() takes them. Where a channel's factor is 0 all it makes is alike;
  // then the largest x is kept, not the first.
  virtual void forward(Context& context, const BatchNormParameters& parameters, const Tensor& x,
                       const Tensor& sums, const Tensor& y, const BatchNormPoolSaved& saved,
                       const Tensor& workspace) = 0;
  // more_dy: a second part of dy, which is then overwritten with both; or empty.
  virtual void backward(Context& context, const BatchNormParameters& parameters, const Tensor& x,
                        const Tensor& dy, const Tensor& more_dy, const BatchNormPoolSaved& saved,
                        const BatchNormGradients& gradients, const Tensor& workspace) = 0;
};

// x, y: shapes (N, C, H, W), channels-last. Null where batch_norm_takes_packs() says no, or where
// the window is none of 3 by 2, 3 by 1 and 2 by 2. dtype: of x.
std::unique_ptr<BatchNormPool> make_batch_norm_pool(const Context& context, const BatchNormCase& c,
                                                    const PoolWindow& window, DType dtype);
// Of a CUDA build.
std::unique_ptr<BatchNormPool> make_batch_norm_pool_gpu(const BatchNormCase& c,
                                                        const PoolWindow& window);

}  // namespace crema

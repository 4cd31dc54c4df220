// Two batch normalizations whose results are added, followed by a ReLU, where fused kernels compute
// all of it:
//   y = relu(norm(a.x) + norm(b.x))    norm(x) = (x - mean) * inverse * scale + shift
// The end of a residual block with a convolution on both branches. No normalized tensor is written
// and read back, and the gradient of the sum is read once for both.
#pragma once

#include <memory>

#include "kernels/norm/batch_norm.h"

namespace crema {

// One of the two; both have the same case, with added and relu.
struct BatchNormSide {
  BatchNormParameters parameters;
  Tensor x, sums;  // sums: as in batch_norm_forward()
  BatchNormSaved saved;
};

class BatchNormPair {
 public:
  virtual ~BatchNormPair() = default;
  virtual size_t workspace() const = 0;
  // a.saved.signs: those of y, or empty when no backward follows.
  virtual void forward(Context& context, const BatchNormSide& a, const BatchNormSide& b,
                       const Tensor& y, const Tensor& workspace) = 0;
  // Recomputes y, bit for bit, from what forward saved.
  virtual void recompute(Context& context, const BatchNormSide& a, const BatchNormSide& b,
                         const Tensor& y, const Tensor& workspace) = 0;
  // dy is overwritten with the gradient before the ReLU, and may share memory with one dx. more_dy:
  // a second part of dy, or empty.
  virtual void backward(Context& context, const BatchNormSide& a, const BatchNormSide& b,
                        const Tensor& dy, const Tensor& more_dy, const BatchNormGradients& of_a,
                        const BatchNormGradients& of_b, const Tensor& workspace) = 0;
};

// Null where batch_norm_takes_packs() is false. dtype: of x.
std::unique_ptr<BatchNormPair> make_batch_norm_pair(Context& context, const BatchNormCase& c,
                                                    DType dtype);
// Only in a CUDA build.
std::unique_ptr<BatchNormPair> make_batch_norm_pair_gpu(const BatchNormCase& c);

}  // namespace crema

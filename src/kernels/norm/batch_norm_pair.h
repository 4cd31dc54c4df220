// Two batch normalizations whose results are added, with a ReLU behind, where kernels do all of it
// together:
//   y = relu(norm(a.x) + norm(b.x))    norm(x) = (x - mean) * inverse * scale + shift
// The end of a residual block with a convolution on both ways. What one of them makes is neither
// written nor read again, and the gradient of the sum is read once for both.
#pragma once

#include <memory>

#include "kernels/norm/batch_norm.h"

namespace crema {

// One of them; both are of the same case, with added and relu.
struct BatchNormSide {
  BatchNormParameters parameters;
  Tensor x, sums;  // sums: as batch_norm_forward() takes them
  BatchNormSaved saved;
};

class BatchNormPair {
 public:
  virtual ~BatchNormPair() = default;
  virtual size_t workspace() const = 0;
  // a.saved.signs: of y, or empty where no backward follows.
  virtual void forward(Context& context, const BatchNormSide& a, const BatchNormSide& b,
                       const Tensor& y, const Tensor& workspace) = 0;
  // y once more, bit for bit, from what forward saved.
  virtual void recompute(Context& context, const BatchNormSide& a, const BatchNormSide& b,
                         const Tensor& y, const Tensor& workspace) = 0;
  // dy is overwritten with the gradient before the ReLU, and may be the memory of one dx. more_dy:
  // a second part of it, or empty.
  virtual void backward(Context& context, const BatchNormSide& a, const BatchNormSide& b,
                        const Tensor& dy, const Tensor& more_dy, const BatchNormGradients& of_a,
                        const BatchNormGradients& of_b, const Tensor& workspace) = 0;
};

// Null where batch_norm_takes_packs() says no. dtype: of x.
std::unique_ptr<BatchNormPair> make_batch_norm_pair(Context& context, const BatchNormCase& c,
                                                    DType dtype);
// Of a CUDA build.
std::unique_ptr<BatchNormPair> make_batch_norm_pair_gpu(const BatchNormCase& c);

}  // namespace crema

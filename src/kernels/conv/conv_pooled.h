// A convolution of which nobody wants more than the maxima of 2 x 2 places, and a dropout of these:
// one kernel forward, and gradients that read the maxima's own. For small images on a GPU, where
// starting the kernels that this replaces costs more than their work.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/core/dropout.h"

namespace crema {

class PooledConv {
 public:
  virtual ~PooledConv() = default;
  virtual Format weights_format() const = 0;
  // See WeightedSum.
  virtual bool adds_weights() const = 0;
  // y: (N, O, pooled...), channels-last, zero where dropped. kept: like y, a byte each, for the
  // gradients; may be empty.
  virtual void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                       const Tensor& y, const Tensor& kept, const DropoutMask& mask) = 0;
  // dy is multiplied by `factor`, that of the mask.
  virtual void backward_data(Context& context, const Tensor& dy, const Tensor& kept, float factor,
                             const Tensor& w, const Tensor& dx) = 0;
  // db may be empty.
  virtual void backward_weights(Context& context, const Tensor& x, const Tensor& dy,
                                const Tensor& kept, float factor, const Tensor& dw,
                                const Tensor& db, bool accumulate_w, bool accumulate_b) = 0;
};

// Whether c (with ConvCase::pooled; y before the pooling) is of those that this is for.
bool worth_pooling(const Context& context, const ConvCase& c);
// Null with the reason where it cannot be had.
std::unique_ptr<PooledConv> make_pooled_conv(Context& context, const ConvCase& c,
                                             std::string& reason);
// Of a CUDA build.
std::unique_ptr<PooledConv> make_pooled_conv_gpu(Context& context, const ConvCase& c,
                                                 std::string& reason);

}  // namespace crema

// A convolution fused with the only reader of its output, a 2 x 2 max pooling, and a dropout after
// that: one kernel forward, and gradients that read only the pooled gradient. For small images on a
// GPU, where launching the kernels that this replaces costs more than their work.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/pointwise/dropout.h"

namespace crema {

class PooledConv {
 public:
  virtual ~PooledConv() = default;
  virtual Format weights_format() const = 0;
  // See LinearKernelFeatures.
  virtual bool atomic_wgrad() const = 0;
  // y: (N, O, pooled...), channels-last, zero where dropped. argmax: shaped like y, one byte
  // per element, for the gradients; may be empty.
  virtual void forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& b,
                       const Tensor& y, const Tensor& argmax, const DropoutMask& mask) = 0;
  // dy is multiplied by `factor`, that of the dropout mask.
  virtual void backward_data(Context& context, const Tensor& dy, const Tensor& argmax, float factor,
                             const Tensor& w, const Tensor& dx) = 0;
  // db may be empty.
  virtual void backward_weights(Context& context, const Tensor& x, const Tensor& dy,
                                const Tensor& argmax, float factor, const Tensor& dw,
                                const Tensor& db, bool accumulate_w, bool accumulate_b) = 0;
};

// Whether fusing is profitable for c (with ConvCase::pooled; c.y is before the pooling).
bool pooling_is_profitable(const Context& context, const ConvCase& c);
// May decline cases where fusing would be profitable.
extern KernelMakers<PooledConv, ConvCase> pooled_conv_kernels;

}  // namespace crema

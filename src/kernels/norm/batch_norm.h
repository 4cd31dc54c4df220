// Batch normalization, alone or with what usually follows it, as one kernel:
//   y = relu((x - mean) * inverse * scale + shift + added)    inverse = 1 / sqrt(variance + eps)
// scale, shift: one value a channel, 1 and 0 when absent. added: like x, 0 when absent. relu: if
// wanted; positive values stay, others are multiplied with `slope`. Mean and variance are the
// batch's, or the stored ones.
#pragma once

#include "kernels/core/channel.h"

namespace crema {

struct BatchNormCase {
  ChannelView view;
  bool batch_statistics = true;
  float eps = 1e-5f;
  float fraction = 0.999f;  // of the stored statistics that is kept when the batch's are added
  float share = 1;          // of the batch's that is added
  bool unbiased =
      true;  // the batch's variance that is added is m / (m - 1) times that of its m values
  bool added = false;
  bool relu = false;
  float slope = 0;
};

struct BatchNormParameters {
  // Caffe's three blobs: sums of means and of variances, and the number both are to be divided by,
  // which is 1 when empty. Without any, no statistics are kept, and where the batch's are not used
  // they are mean 0 and inverse 1.
  Tensor stored_mean, stored_variance, stored_factor;
  Tensor scale, shift;
};

// Bytes that both passes scribble on.
size_t batch_norm_workspace(Context& context, const ChannelView& view);

// What forward leaves for backward.
struct BatchNormSaved {
  Tensor mean, inverse;  // (channels)
  // A byte for every 16 bytes of y, with a bit for each of its elements: whether that is positive.
  // Empty: not wanted, and backward reads y.
  Tensor signs;
};

// True where backward takes dy in two parts and, with added and relu, forward gives signs: on a
// GPU, channels-last, with channels that fill whole packs of 16 bytes. dtype: of x.
bool batch_norm_takes_packs(const Context& context, const BatchNormCase& c, DType dtype);

// With batch statistics the stored ones are updated. y may lie in the memory of x. sums (2,
// channels), float32: of x and of its squares, from whoever made x; empty: they are found here.
void batch_norm_forward(Context& context, const BatchNormCase& c,
                        const BatchNormParameters& parameters, const Tensor& x, const Tensor& added,
                        const Tensor& sums, const Tensor& y, const BatchNormSaved& saved,
                        const Tensor& workspace);

// Forward without y: instead affine (2, channels), float16, scale and shift of
//   y = relu(x * affine[0] + affine[1])
// Only where batch_norm_takes_packs() and nothing is added.
void batch_norm_affine(Context& context, const BatchNormCase& c,
                       const BatchNormParameters& parameters, const Tensor& x, const Tensor& sums,
                       const Tensor& affine, const BatchNormSaved& saved, const Tensor& workspace);

// y once more, bit for bit, from the mean and inverse that forward saved; nothing else is written.
void batch_norm_recompute(Context& context, const BatchNormCase& c,
                          const BatchNormParameters& parameters, const Tensor& x,
                          const Tensor& added, const Tensor& y, const BatchNormSaved& saved,
                          const Tensor& workspace);

// Gradients that are not wanted are empty. dx may lie in the memory of dy.
struct BatchNormGradients {
  Tensor dx, d_added, d_scale, d_shift;
  bool accumulate_scale = false, accumulate_shift = false;
};

// Without scale, shift, added and relu only y is read, with added and relu both x and, where there
// are no signs, y, else only x. more_dy: a second part of the gradient, to be added to dy, which is
// then overwritten; or empty.
void batch_norm_backward(Context& context, const BatchNormCase& c,
                         const BatchNormParameters& parameters, const Tensor& x, const Tensor& y,
                         const Tensor& dy, const Tensor& more_dy, const BatchNormSaved& saved,
                         const BatchNormGradients& gradients, const Tensor& workspace);

}  // namespace crema

// Batch normalization, alone or fused with what usually follows it, as one kernel:
//   y = relu((x - mean) * inverse * scale + shift + added)    inverse = 1 / sqrt(variance + eps)
// scale, shift: one value per channel, 1 and 0 when absent. added: like x, 0 when absent. relu:
// optional; positive values stay, others are multiplied by `slope`; or gelu, the exact one, in its
// place. Mean and variance are those of the batch, or the stored ones.
#pragma once

#include "kernels/pointwise/channel.h"

namespace crema {

struct BatchNormCase {
  ChannelView view;
  bool batch_statistics = true;
  float eps = 1e-5f;
  float fraction = 0.999f;  // of the stored statistics that is kept in an update
  float share = 1;          // of the batch's statistics that is added
  bool unbiased = true;     // the batch's variance over m values is added times m / (m - 1)
  bool added = false;
  bool relu = false;
  float slope = 0;
  // Only where batch_norm_takes_packs(), with nothing added.
  bool gelu = false;
  // The batch is that of all ranks (batch_norm_ranks.h). Not with `sums`, nor where another kernel
  // computes the statistics.
  bool over_ranks = false;
};

struct BatchNormParameters {
  // Caffe's three blobs: sums of means and of variances, and the number to divide both by, which is
  // 1 when empty. Without them no statistics are kept, and where the batch's are not used, mean is
  // 0 and inverse 1.
  Tensor stored_mean, stored_variance, stored_factor;
  Tensor scale, shift;
};

// Bytes of workspace for either pass.
size_t batch_norm_workspace(Context& context, const ChannelView& view, bool over_ranks = false);

// What forward leaves for backward.
struct BatchNormSaved {
  Tensor mean, inverse;  // (channels)
  // One byte per 16 bytes of y, with one bit per element: whether it is positive. Empty: not
  // wanted, and backward reads y.
  Tensor signs;
};

// True where backward accepts dy in two parts and, with added and relu, forward writes signs: on a
// GPU, channels-last, when the channels fill whole packs of 16 bytes. dtype: of x.
bool batch_norm_takes_packs(const Context& context, const BatchNormCase& c, DType dtype);

// With batch statistics the stored ones are updated. y may share the memory of x. sums (2,
// channels), float32: the sums of x and of its squares, from the kernel that wrote x; empty: they
// are computed here.
void batch_norm_forward(Context& context, const BatchNormCase& c,
                        const BatchNormParameters& parameters, const Tensor& x, const Tensor& added,
                        const Tensor& sums, const Tensor& y, const BatchNormSaved& saved,
                        const Tensor& workspace);

// Forward that does not write y but affine (2, channels), float16, scale and shift of
//   y = relu(x * affine[0] + affine[1])
// Only where batch_norm_takes_packs() and nothing is added.
void batch_norm_affine(Context& context, const BatchNormCase& c,
                       const BatchNormParameters& parameters, const Tensor& x, const Tensor& sums,
                       const Tensor& affine, const BatchNormSaved& saved, const Tensor& workspace);

// Recomputes y, bit for bit, from the mean and inverse that forward saved; writes nothing else.
void batch_norm_recompute(Context& context, const BatchNormCase& c,
                          const BatchNormParameters& parameters, const Tensor& x,
                          const Tensor& added, const Tensor& y, const BatchNormSaved& saved,
                          const Tensor& workspace);

// Gradients that are not wanted are empty. dx may share the memory of dy.
struct BatchNormGradients {
  Tensor dx, d_added, d_scale, d_shift;
  bool accumulate_scale = false, accumulate_shift = false;
};

// Without scale, shift, added, relu and gelu only y is read; with added and relu x and, without signs, y;
// otherwise only x. more_dy: a second part of the gradient, added to dy, which is then overwritten;
// or empty.
void batch_norm_backward(Context& context, const BatchNormCase& c,
                         const BatchNormParameters& parameters, const Tensor& x, const Tensor& y,
                         const Tensor& dy, const Tensor& more_dy, const BatchNormSaved& saved,
                         const BatchNormGradients& gradients, const Tensor& workspace);

}  // namespace crema

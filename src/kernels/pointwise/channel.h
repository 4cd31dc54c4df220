// A tensor seen as (groups, outer, channels, inner), and the operations of BatchNorm, Scale and
// Bias with one value per channel. Row-major (N, C, H, W) has outer N and inner H * W;
// channels-last has outer N * H * W and inner 1. With more than one group each group has its own
// values: Scale by a blob of shape (N, C) in channels-last.
//
// These functions compute in the tensors' own type, float or double: on the CPU, and on a GPU for
// float64 and for BatchNorm of row-major images. A GPU's other tensors, float and 16 bits, have
// kernels that need fewer passes: those of kernels/pointwise/channel_pass.cuh and of kernels/norm/.
#pragma once

#include "base/host_device.h"
#include "tensor/tensor.h"

namespace crema {

struct ChannelView {
  int64_t groups = 1, outer = 1, channels = 1, inner = 1;

  // Along axis 1; a tensor of one axis is one channel.
  static ChannelView of(const Shape& shape, const Format& format);
  CREMA_HD int64_t count() const { return groups * outer * channels * inner; }
  CREMA_HD int64_t values() const { return groups * channels; }  // per-channel values
  CREMA_HD int64_t each() const { return outer * inner; }        // elements per value
};

// y = (x - center) * factor + shift + added, then ReLU: negative values are multiplied by `slope`.
// center, factor, shift: one value per channel. Supported: {factor}, {shift}, {factor, shift},
// {center, factor, shift}; only the last with added and relu. y may alias x.
struct ChannelAffine {
  Tensor center, factor, shift;
  Tensor added;  // shaped like x
  bool relu = false;
  float slope = 0;
};
void channel_affine(Context& context, const ChannelView& view, const ChannelAffine& affine,
                    const Tensor& x, const Tensor& y);

// What is summed per channel, and what a gradient is computed from: for each element h = x - center
// and the gradient that arrives at x through a ReLU, g = dy where the output was positive and
// slope * dy elsewhere.
struct ChannelTerm {
  enum class Mask {
    none,    // g = dy
    from_y,  // positive where y is
    from_x,  // positive where h * factor + shift is
  };
  Tensor dy, x, y;               // all of one shape; x and y may be empty where nothing reads them
  Tensor center, factor, shift;  // one value per channel; an empty center is 0
  Mask mask = Mask::none;
  float slope = 0;
};

// Two sums per channel, in double: sums[c] = sum(g) and sums[values + c] = sum(g * h), which is 0
// without x. Masks need x and center. masked: g is also written there, unless it is empty; with
// Mask::from_y only; it may alias dy. The order of additions depends on sizes alone. scratch:
// channel_sums_scratch() bytes.
void channel_sums(Context& context, const ChannelView& view, const ChannelTerm& of,
                  const Tensor& masked, double* sums, void* scratch);
// The same for statistics: sum(h) and sum(h * h). center must not be empty.
void channel_statistics(Context& context, const ChannelView& view, const Tensor& x,
                        const Tensor& center, double* sums, void* scratch);
size_t channel_sums_scratch(Context& context, const ChannelView& view);

// dx = factor * g + h * x_factor + constant, with `factor` of the term. x_factor and constant: one
// value per channel, or both empty, and then x may be empty, too. dx may alias dy.
void channel_gradient(Context& context, const ChannelView& view, const ChannelTerm& of,
                      const Tensor& x_factor, const Tensor& constant, const Tensor& dx);

// out[c] = sums[c], or += when `accumulate`, for all c of out.
void store_sums(Context& context, const double* sums, const Tensor& out, bool accumulate);

}  // namespace crema

// A tensor seen as (groups, outer, channels, inner), and the operations of BatchNorm, Scale and
// Bias with one value per channel. Row-major (N, C, H, W) has outer N and inner H * W;
// channels-last has outer N * H * W and inner 1. With more than one group each group has its own
// values: Scale by a blob of shape (N, C) in channels-last.
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

// The gradient that arrives at x through a ReLU: g = dy where the output was positive, slope * dy
// elsewhere.
struct ChannelGradient {
  enum class Mask {
    none,    // g = dy
    from_y,  // positive where y is
    from_x,  // positive where (x - center) * factor + shift is
  };
  Tensor dy, x, y;
  Tensor center, factor, shift;  // one value per channel
  Mask mask = Mask::none;
  float slope = 0;
};

// Two sums per channel, in double: sum(g) and sum(g * (x - center)); sums[c] and sums[values + c].
//   without x     only the first (the second is 0)
//   without dy    g is x - center: for statistics
//   masked        g is also written there, unless it is empty; with Mask::from_y only
// Also supported: {dy, x} with or without center, masks only with both. The order of additions
// depends on sizes alone. scratch: channel_sums_scratch() bytes.
void channel_sums(Context& context, const ChannelView& view, const ChannelGradient& gradient,
                  const Tensor& masked, double* sums, void* scratch);
size_t channel_sums_scratch(Context& context, const ChannelView& view);

// dx = factor * g + (x - center) * slant + offset; slant and offset may be empty, then x may be
// too. dx may alias dy.
void channel_gradient(Context& context, const ChannelView& view, const ChannelGradient& gradient,
                      const Tensor& slant, const Tensor& offset, const Tensor& dx);

// out[c] = sums[c], or += when `accumulate`.
void store_sums(Context& context, const double* sums, const Tensor& out, bool accumulate);

}  // namespace crema

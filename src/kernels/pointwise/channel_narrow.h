// For few channels in channels-last on the CPU: joins several short rows into one wide row, with as
// many copies of the per-channel values. The remainder at the end is processed as it is.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/pointwise/channel.h"
#include "tensor/on.h"
#include "tensor/part.h"

namespace crema {

struct NarrowChannels {
  int64_t copies = 1;      // rows per wide row
  ChannelView wide, rest;  // rest starts at element `at`
  int64_t at = 0;

  explicit NarrowChannels(const ChannelView& view) {
    copies = 128 / view.channels;
    wide = {1, view.outer / copies, view.channels * copies, 1};
    rest = {1, view.outer % copies, view.channels, 1};
    at = wide.count();
  }
  static bool helps(Context& context, const ChannelView& view) {
    return context.device() == Device::cpu && view.inner == 1 && view.groups == 1 &&
           view.channels > 0 && view.channels <= 32 && view.outer >= 256;
  }

  // The per-channel values, repeated `copies` times; empty stays empty.
  Tensor repeated(Context& context, const Tensor& values) const {
    if (!values) return {};
    const Tensor many(context, Shape{wide.channels}, values.dtype());
    for (int64_t k = 0; k < copies; ++k) {
      copy_bytes(context, static_cast<char*>(many.raw()) + k * values.bytes(), Device::cpu,
                 values.raw(), Device::cpu, values.bytes());
    }
    return many;
  }
  // The elements of the rest.
  Tensor tail(const Tensor& x) const {
    if (!x) return {};
    return part_of(x, at * size_of(x.dtype()), Shape{rest.count()}, x.dtype());
  }

  ChannelTerm wide_term(Context& context, const ChannelTerm& of) const {
    ChannelTerm g = of;
    for (Tensor* values : {&g.center, &g.factor, &g.shift}) *values = repeated(context, *values);
    return g;
  }
  ChannelTerm rest_term(const ChannelTerm& of) const {
    ChannelTerm g = of;
    for (Tensor* elements : {&g.dy, &g.x, &g.y}) *elements = tail(*elements);
    return g;
  }
};

}  // namespace crema

// The forms of ChannelTerm (kernels/pointwise/channel.h), element by element, for both devices: each
// computes g and h = x - center of element i, which uses per-channel value c.
#pragma once

#include "base/error.h"
#include "base/host_device.h"
#include "kernels/pointwise/channel.h"

namespace crema {

template <typename T>
struct StatisticsTerm {
  const T *x, *center;
  CREMA_HD void operator()(int64_t i, int64_t c, T& g, T& h) const { g = h = x[i] - center[c]; }
  // The same term with its pointers advanced by i elements and c values.
  CREMA_HD StatisticsTerm from(int64_t i, int64_t c) const { return {x + i, center + c}; }
};

template <typename T>
struct GradientTerm {
  const T* dy;
  CREMA_HD void operator()(int64_t i, int64_t, T& g, T& h) const {
    g = dy[i];
    h = 0;
  }
  CREMA_HD GradientTerm from(int64_t i, int64_t) const { return {dy + i}; }
};

template <typename T, bool kCenter>
struct ProductTerm {
  const T *dy, *x, *center;
  CREMA_HD void operator()(int64_t i, int64_t c, T& g, T& h) const {
    g = dy[i];
    h = kCenter ? x[i] - center[c] : x[i];
  }
  CREMA_HD ProductTerm from(int64_t i, int64_t c) const {
    return {dy + i, x + i, kCenter ? center + c : nullptr};
  }
};

// The mask is recomputed from x exactly as the forward pass computed y. It is a factor and not a
// choice between two values, so that loops need no branch.
template <typename T>
struct MaskedByInput {
  const T *dy, *x, *center, *factor, *shift;
  T slope;
  CREMA_HD void operator()(int64_t i, int64_t c, T& g, T& h) const {
    h = x[i] - center[c];
    g = dy[i] * (h * factor[c] + shift[c] > 0 ? T(1) : slope);
  }
  CREMA_HD MaskedByInput from(int64_t i, int64_t c) const {
    return {dy + i, x + i, center + c, factor + c, shift + c, slope};
  }
};

template <typename T, bool kStore>
struct MaskedByOutput {
  const T *dy, *x, *y, *center;
  T slope;
  T* masked;
  CREMA_HD void operator()(int64_t i, int64_t c, T& g, T& h) const {
    h = x[i] - center[c];
    g = dy[i] * (y[i] > 0 ? T(1) : slope);
    if (kStore) masked[i] = g;
  }
  CREMA_HD MaskedByOutput from(int64_t i, int64_t c) const {
    return {dy + i, x + i, y + i, center + c, slope, kStore ? masked + i : nullptr};
  }
};

// An element of the bottom's gradient of channel_gradient().
template <typename T>
CREMA_HD T element_gradient(T factor, T g, T h, T x_factor, T constant) {
  return factor * g + (h * x_factor + constant);
}

// Calls body(form) with the form that the term takes; without dy that of the statistics.
template <typename T, typename Body>
void with_term(const ChannelTerm& of, const Tensor& masked, const Body& body) {
  const T *dy = of.dy.data<T>(), *x = of.x.data<T>(), *center = of.center.data<T>();
  const T slope = of.slope;
  switch (of.mask) {
    case ChannelTerm::Mask::none:
      if (!dy) return body(StatisticsTerm<T>{x, center});
      if (!x) return body(GradientTerm<T>{dy});
      if (!center) return body(ProductTerm<T, false>{dy, x, center});
      return body(ProductTerm<T, true>{dy, x, center});
    case ChannelTerm::Mask::from_x:
      return body(MaskedByInput<T>{dy, x, center, of.factor.data<T>(), of.shift.data<T>(), slope});
    case ChannelTerm::Mask::from_y:
      if (masked)
        return body(
            MaskedByOutput<T, true>{dy, x, of.y.data<T>(), center, slope, masked.data<T>()});
      return body(MaskedByOutput<T, false>{dy, x, of.y.data<T>(), center, slope, nullptr});
  }
}

}  // namespace crema

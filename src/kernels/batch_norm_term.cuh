// What the GPU kernels of batch normalization know of a channel, and how their backward passes read
// the gradient. Only for .cu files of a CUDA build.
#pragma once

#include "kernels/batch_norm_bodies.h"
#include "kernels/pack.h"

namespace crema::batch_norm {

// One value a channel each.
struct Numbers {
  const float *scale, *shift;  // learned; null: 1 and 0
  StoredStatistics<float> stored;
  float *mean, *inverse;     // kept for backward
  float *slant, *offset;     // backward: dx = factor g + h slant + offset
  float *d_scale, *d_shift;  // null: not wanted
  bool accumulate_scale, accumulate_shift;
  double each;        // elements of a channel
  const float *sums;  // of x and, behind them, of its squares; null: mean and inverse are known

  // Kept ones, or where there are sums those made of them; notes: keeps them then.
  __device__ void statistics(int64_t c, int64_t channels, bool notes, float &mean_c,
                             float &inverse_c) const {
    if (!sums) {
      mean_c = mean[c];
      inverse_c = inverse[c];
      return;
    }
    const auto count = static_cast<float>(each);
    mean_c = sums[c] / count;
    const float variance = fmaxf(fmaf(-mean_c, mean_c, sums[channels + c] / count), 0.f);
    inverse_c = 1 / sqrtf(variance + stored.eps);
    if (!notes) return;
    mean[c] = mean_c;
    inverse[c] = inverse_c;
    stored.add(c, mean_c, variance, each);
  }
  __device__ float factor(int64_t c, float inverse_c) const {
    return scale ? inverse_c * scale[c] : inverse_c;
  }
  __device__ float factor(int64_t c) const { return factor(c, inverse[c]); }
  __device__ float bias(int64_t c) const { return shift ? shift[c] : 0; }

  // From the sums of the gradient g and of g h. h_is_y: h is not x - mean.
  __device__ void finish_gradients(int64_t c, double sum_g, double sum_gh, bool h_is_y,
                                   bool through_statistics) const {
    const float inverse_c = inverse[c], factor_c = factor(c, inverse_c);
    const double shrink = h_is_y ? 1 : static_cast<double>(inverse_c) * inverse_c;
    slant[c] = through_statistics ? static_cast<float>(-factor_c * shrink * sum_gh / each) : 0;
    offset[c] = through_statistics ? static_cast<float>(-factor_c * sum_g / each) : 0;
    if (d_scale) {
      const float value = static_cast<float>(inverse_c * sum_gh);
      d_scale[c] = accumulate_scale ? d_scale[c] + value : value;
    }
    if (d_shift) {
      const float value = static_cast<float>(sum_g);
      d_shift[c] = accumulate_shift ? d_shift[c] + value : value;
    }
  }
};

// slants: room for two numbers a channel.
inline Numbers numbers_of(const BatchNormCase &c, const BatchNormParameters &p,
                          const BatchNormSaved &saved, float *slants) {
  Numbers n{};
  n.scale = p.scale.data<float>();
  n.shift = p.shift.data<float>();
  n.stored = {c, p};
  n.mean = saved.mean.data<float>();
  n.inverse = saved.inverse.data<float>();
  n.slant = slants;
  n.offset = n.slant + c.view.channels;
  n.each = static_cast<double>(c.view.each());
  return n;
}

// How the gradient that arrives at x is found: through the ReLU by the sign of y, by the bits that
// forward kept of it, or by that of the value computed from x again; h is x - mean, or y where x is
// not kept.
enum class Mask { none, from_y, from_signs, from_x };
enum class From { x, y, nothing };  // h; nothing: 0, with stored statistics nobody asks

template <typename T, int kPack, Mask kMask, From kFrom, bool kTwo = false>
struct Term {
  const T *x, *y, *dy, *more_dy;  // kTwo: dy + more_dy is the gradient
  const uint8_t *signs;
  float slope;
  float mean[kPack], factor[kPack], bias[kPack];

  __device__ void start(const Numbers &n, int64_t c) {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      mean[k] = n.mean[c + k];
      factor[k] = n.factor(c + k);
      bias[k] = n.bias(c + k);
    }
  }
  struct Loaded {
    Pack<T, kPack> dy, more_dy, x, y;
    unsigned signs;
  };
  __device__ Loaded load(int64_t at) const {
    using P = Pack<T, kPack>;
    Loaded p;
    p.dy = *reinterpret_cast<const P *>(dy + at);
    if constexpr (kTwo) p.more_dy = *reinterpret_cast<const P *>(more_dy + at);
    if constexpr (kMask == Mask::from_signs) p.signs = signs[at / kPack];
    if constexpr (kFrom == From::x) p.x = *reinterpret_cast<const P *>(x + at);
    if constexpr (kFrom == From::y || kMask == Mask::from_y)
      p.y = *reinterpret_cast<const P *>(y + at);
    return p;
  }
  __device__ void read(const Loaded &p, float (&g)[kPack], float (&h)[kPack]) const {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      g[k] = p.dy.v[k];
      if constexpr (kTwo) g[k] += static_cast<float>(p.more_dy.v[k]);
      h[k] = 0;
      if constexpr (kFrom == From::y) h[k] = p.y.v[k];
      if constexpr (kFrom == From::x) h[k] = static_cast<float>(p.x.v[k]) - mean[k];
      if constexpr (kMask == Mask::from_y) {
        if (!(static_cast<float>(p.y.v[k]) > 0)) g[k] *= slope;
      }
      if constexpr (kMask == Mask::from_signs) {
        if (!(p.signs >> k & 1u)) g[k] *= slope;
      }
      if constexpr (kMask == Mask::from_x) {
        if (!(h[k] * factor[k] + bias[k] > 0)) g[k] *= slope;
      }
    }
  }
};

}  // namespace crema::batch_norm

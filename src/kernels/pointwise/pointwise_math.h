// Elementary functions that vectorise: on the CPU the float versions are branch-free polynomials
// (the library's expf is a call per value), within 2 units in the last place. float64 and the GPU
// use the library's.
#pragma once

#include <cmath>
#ifndef __CUDA_ARCH__
#include <bit>
#endif
#include <cstdint>

#include "base/host_device.h"

namespace crema {

// On a GPU within 2 units in the last place, and 0 beyond 2^126.
CREMA_HD inline double reciprocal_of(double x) { return 1 / x; }
CREMA_HD inline float reciprocal_of(float x) {
#ifdef __CUDA_ARCH__
  return __fdividef(1.0f, x);
#else
  return 1.0f / x;
#endif
}

CREMA_HD inline double exp_of(double x) { return exp(x); }
CREMA_HD inline double tanh_of(double x) { return tanh(x); }

CREMA_HD inline float exp_of(float x) {
#ifdef __CUDA_ARCH__
  return expf(x);
#else
  // e^x = 2^n * e^r with |r| <= ln(2) / 2; coefficients of the polynomial for e^r from Cephes'
  // expf.
  constexpr float kRounder =
      12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const float shifted = x * 1.44269504f + kRounder;
  const float n = shifted - kRounder;
  const float r = x - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // 2^n in two factors, so that results near the ends of float's range become infinity or denormal
  // numbers.
  const int32_t whole = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRounder);
  const int32_t half = whole >> 1;
  return p * std::bit_cast<float>((half + 127) << 23) *
         std::bit_cast<float>((whole - half + 127) << 23);
#endif
}

CREMA_HD inline float tanh_of(float x) {
#ifdef __CUDA_ARCH__
  return tanhf(x);
#else
  const float magnitude = x < 0 ? -x : x;
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float near_zero = p * z * x + x;
  const float far = 1.0f - 2.0f / (exp_of(2.0f * magnitude) + 1.0f);
  return magnitude < 0.625f ? near_zero : (x < 0 ? -far : far);
#endif
}

CREMA_HD inline double log_of(double x) { return log(x); }
CREMA_HD inline float log_of(float x) {
#ifdef __CUDA_ARCH__
  return logf(x);
#else
  // x = 2^n * (1 + f) with 1 + f from sqrt(1/2) to sqrt(2); coefficients of the polynomial for
  // log(1 + f) from Cephes' logf. Denormal numbers are scaled first.
  constexpr int32_t kRootOfHalf = 0x3f3504f3;
  const bool small = x < 1.17549435e-38f;
  const int32_t bits = std::bit_cast<int32_t>(small ? x * 8388608.0f : x) - kRootOfHalf;
  const float n = static_cast<float>((bits >> 23) - (small ? 23 : 0));
  const float f = std::bit_cast<float>((bits & 0x7fffff) + kRootOfHalf) - 1.0f, z = f * f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const float rest = f * z * p - n * 2.12194440e-4f - 0.5f * z;
  const float result = f + rest + n * 0.693359375f;
  const float edge = x == 0 ? -INFINITY : x > 0 ? x : NAN;  // of 0, infinity, negative x or NaN
  return x > 0 && x < INFINITY ? result : edge;
#endif
}

// log(1 + e) for e in [0, 1]: 2 * artanh(e / (2 + e)) as a series.
CREMA_HD inline double log1p_of(double e) { return log1p(e); }
CREMA_HD inline float log1p_of(float e) {
  const float s = e * reciprocal_of(2.0f + e), z = s * s;
  float p = 1.0f / 15.0f;
  p = p * z + 1.0f / 13.0f;
  p = p * z + 1.0f / 11.0f;
  p = p * z + 1.0f / 9.0f;
  p = p * z + 1.0f / 7.0f;
  p = p * z + 1.0f / 5.0f;
  p = p * z + 1.0f / 3.0f;
  return 2.0f * (s * z * p + s);
}

template <typename T>
CREMA_HD inline T sigmoid_of(T x) {
  return reciprocal_of(T(1) + exp_of(-x));
}

// log(1 + e^x), written so that no exponential overflows.
template <typename T>
CREMA_HD inline T softplus_of(T x) {
  const T right = x > 0 ? x : T(0);
  return right + log1p_of(exp_of(x > 0 ? -x : x));
}

// The normal cumulative distribution function.
CREMA_HD inline double normal_below(double x) { return 0.5 * erfc(x * -0.70710678118654752); }
CREMA_HD inline float normal_below(float x) {
  // The value at -|x| is e^(-x^2/2) times a smooth function of |x|: a polynomial in t = 1 / (1 +
  // 0.32 * |x|), fitted at Chebyshev points, relative error 5e-8. The GPU's library takes three
  // times as long.
  const float t = reciprocal_of(1.0f + 0.32f * (x < 0 ? -x : x));
  float p = -2.0754162292e-2f;
  p = p * t + 9.3997391929e-2f;
  p = p * t - 1.4416794612e-1f;
  p = p * t + 6.2883592121e-2f;
  p = p * t - 8.0245154410e-3f;
  p = p * t + 5.8223431405e-2f;
  p = p * t + 8.7903024527e-2f;
  p = p * t + 1.1461657890e-1f;
  p = p * t + 1.2766106247e-1f;
  p = p * t + 1.2766153053e-1f;
  const float tail = p * t * exp_of(-0.5f * x * x);
  return x < 0 ? tail : 1.0f - tail;
}

}  // namespace crema

// 16-bit floating-point types for storage only: a read converts to float, and arithmetic is in
// float.
#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.h"
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace crema {

// IEEE 754 binary16: 5 exponent bits, 10 fraction bits.
struct Half {
  static constexpr bool kGpuOnly = true;
  uint16_t bits = 0;

  Half() = default;
  CREMA_HD Half(float value) : bits(pack(value)) {}  // NOLINT(google-explicit-constructor)
  CREMA_HD operator float() const {                  // NOLINT(google-explicit-constructor)
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(bits));
#else
    const uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    // The multiplication rebiases the exponent, for subnormal numbers too.
    const float magnitude = std::bit_cast<float>(rest << 13) * 0x1p112f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
#endif
  }

 private:
  CREMA_HD static uint16_t pack(float value) {
#ifdef __CUDA_ARCH__
    return __half_as_ushort(__float2half_rn(value));
#else
    const uint32_t word = std::bit_cast<uint32_t>(value), magnitude = word & 0x7fffffffu;
    const uint16_t sign = static_cast<uint16_t>(word >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u) return sign | 0x7e00u;   // NaN
    if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to infinity
    if (magnitude < 0x38800000u) {                        // subnormal: steps of 2^-24
      const float steps = std::bit_cast<float>(magnitude) * 0x1p24f;
      // Adding 2^23 rounds to an integer, ties to even.
      const uint32_t whole = std::bit_cast<uint32_t>(steps + 0x1p23f) & 0x7fffffu;
      return static_cast<uint16_t>(sign | whole);
    }
    const uint32_t odd = magnitude >> 13 & 1u;
    return static_cast<uint16_t>(sign | ((magnitude + 0xfffu + odd - 0x38000000u) >> 13));
#endif
  }
};

// The upper half of a float: 8 exponent bits, 7 fraction bits.
struct BFloat16 {
  static constexpr bool kGpuOnly = true;
  uint16_t bits = 0;

  BFloat16() = default;
  CREMA_HD BFloat16(float value) : bits(pack(value)) {}  // NOLINT(google-explicit-constructor)
  CREMA_HD operator float() const {                      // NOLINT(google-explicit-constructor)
#ifdef __CUDA_ARCH__
    return __uint_as_float(static_cast<uint32_t>(bits) << 16);
#else
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
#endif
  }

 private:
  CREMA_HD static uint16_t pack(float value) {
#ifdef __CUDA_ARCH__
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
    const uint32_t word = std::bit_cast<uint32_t>(value);
    if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(word >> 16 | 0x40u);
    return static_cast<uint16_t>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
#endif
  }
};

// The type in which a kernel computes on elements of type T.
template <typename T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Half> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <typename T>
using Compute = typename ComputeType<T>::type;

}  // namespace crema

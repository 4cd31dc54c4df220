// Element types.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/half.h"

namespace crema {

enum class DType : uint8_t { f32, f64, i32, u8, f16, bf16 };

inline bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

inline bool is_real(DType type) { return type != DType::i32 && type != DType::u8; }

inline size_t size_of(DType type) {
  switch (type) {
    case DType::f32:
      return 4;
    case DType::f64:
      return 8;
    case DType::i32:
      return 4;
    case DType::u8:
      return 1;
    case DType::f16:
    case DType::bf16:
      return 2;
  }
  return 0;
}

inline const char* name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "float32";
    case DType::f64:
      return "float64";
    case DType::i32:
      return "int32";
    case DType::u8:
      return "uint8";
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
  }
  return "?";
}

template <typename T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct dtype_of<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct dtype_of<Half> {
  static constexpr DType value = DType::f16;
};
template <>
struct dtype_of<BFloat16> {
  static constexpr DType value = DType::bf16;
};

}  // namespace crema

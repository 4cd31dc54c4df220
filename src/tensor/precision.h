// What a net computes in. Weights, their updates, losses and statistics stay in float32 (or float64
// where a test asks for it) in all of them.
#pragma once

#include <string>

#include "tensor/dtype.h"

namespace crema {

enum class Precision : uint8_t {
  fp32,  // float32, exact
  tf32,  // float32 in memory; products of convolutions and matrices round their factors to 11 bits
  bf16,  // activations, their gradients and the weights' copies in bfloat16
  fp16,  // the same in float16, with a loss scale
};

inline bool is_half(Precision precision) { return precision >= Precision::bf16; }

// What activations are stored in; `real` is float32 or float64.
inline DType storage_of(Precision precision, DType real) {
  if (precision == Precision::bf16) return DType::bf16;
  return precision == Precision::fp16 ? DType::f16 : real;
}

const char* name_of(Precision precision);
// Error with the known names.
Precision precision_named(const std::string& name);

}  // namespace crema

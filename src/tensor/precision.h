// The precision in which a net computes. Weights, their updates, losses and statistics are float32
// in every mode (float64 if a test requests it).
#pragma once

#include <string>

#include "tensor/dtype.h"

namespace crema {

enum class Precision : uint8_t {
  fp32,  // float32, exact
  tf32,  // float32 in memory; convolutions and GEMMs round their operands to 11 bits
  bf16,  // activations, their gradients and copies of the weights in bfloat16
  fp16,  // the same in float16, with a loss scale
};

inline bool is_half(Precision precision) { return precision >= Precision::bf16; }

// The dtype of stored activations; `real` is float32 or float64.
inline DType storage_of(Precision precision, DType real) {
  if (precision == Precision::bf16) return DType::bf16;
  return precision == Precision::fp16 ? DType::f16 : real;
}

const char* name_of(Precision precision);
// Throws an Error that lists the known names.
Precision precision_named(const std::string& name);

}  // namespace crema

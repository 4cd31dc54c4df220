// Rounds tensors to integers of few bits, times a step: the values that kernels of integers compute with.
#pragma once

#include "device/context.h"
#include "tensor/tensor.h"

namespace crema {

// The values of a tensor become step * n, with n the nearest integer in [low, high].
struct QuantizedValues {
  float step = 1;
  float low = -128, high = 127;
  // Whether the low byte of an integer says which one it is.
  bool is_byte() const { return high - low <= 255 && low >= -128; }
  bool operator==(const QuantizedValues&) const = default;
};

// y = values.step * clamp(round(x / values.step)); halves go to the even integer, NaN stays. The same shape,
// dtype and format; y may be x.
void quantize(Context& context, const QuantizedValues& values, const Tensor& x, const Tensor& y);

// y = values.step * n for integers n that are given as their low bytes. bytes: u8, in y's shape and format.
void values_of_bytes(Context& context, const QuantizedValues& values, const Tensor& bytes,
                     const Tensor& y);

// The same as quantize() for row-major weights whose rows (axis 0) have different steps. steps: float32, of one
// element or one for each row; low and high as in QuantizedValues.
// A step of 0 leaves its row as it is.
void quantize_rows(Context& context, const Tensor& steps, float low, float high, const Tensor& w,
                   const Tensor& y);

// The steps with which the largest magnitude of each row of w, row-major, is the integer `largest`; 0 for a row
// of zeros. steps: float32, one for each row. workspace: steps_workspace() bytes.
size_t steps_workspace(const Shape& w);
void steps_of_rows(Context& context, const Tensor& w, float largest, const Tensor& steps,
                   const Tensor& workspace);

}  // namespace crema

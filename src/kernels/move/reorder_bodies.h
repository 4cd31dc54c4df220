// The implementations of reorder().
#pragma once

#include "tensor/tensor.h"

namespace crema {

// CPU: transposes each of `count` matrices of rows x columns elements of `size` bytes.
void transpose(const void* from, void* to, int64_t count, int64_t rows, int64_t columns,
               size_t size);
// GPU: the same layout, another floating-point type.
void convert(Context& context, const Tensor& from, const Tensor& to);
// GPU: row-major to channels-last or back, floating-point types.
void transpose_gpu(Context& context, const Tensor& from, const Tensor& to);
// Any formats, element by element, on either device; the padding of `to` is left unchanged.
void reorder_elements(Context& context, const Tensor& from, const Tensor& to);
// CPU, blocked float32: oneDNN. Returns false when oneDNN does not support the formats.
bool reorder_onednn(const Tensor& from, const Tensor& to);

}  // namespace crema

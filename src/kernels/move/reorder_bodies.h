// The bodies behind reorder().
#pragma once

#include "tensor/tensor.h"

namespace crema {

// CPU: each of `count` matrices of rows x columns elements of `size` bytes becomes columns x rows.
void transpose(const void* from, void* to, int64_t count, int64_t rows, int64_t columns,
               size_t size);
// GPU: the same layout, another real type.
void convert(Context& context, const Tensor& from, const Tensor& to);
// GPU: plain to channels-last or back, real types.
void transpose_gpu(Context& context, const Tensor& from, const Tensor& to);
// Any formats, element by element, on either device; the padding of `to` is left alone.
void reorder_elements(Context& context, const Tensor& from, const Tensor& to);
// CPU, blocked float32: oneDNN. False when it does not know the formats.
bool reorder_onednn(const Tensor& from, const Tensor& to);

}  // namespace crema

// Moves a tensor from one format (order, blocks) to another.
#pragma once

#include "tensor/tensor.h"

namespace crema {

// The same shape on the context's device, any formats; the tensors do not overlap. The same dtype,
// or any two of float32, float16, bfloat16 in plain and channels-last order on a GPU. Padding of a
// blocked goal is set to zero.
void reorder(Context& context, const Tensor& from, const Tensor& to);

// On a GPU: rows of `from_columns` elements become rows of `to_columns`, cut or with zeros behind;
// real types that may differ. accumulate: added to what is there.
void resize_rows(Context& context, int64_t rows, const Tensor& from, int64_t from_columns,
                 const Tensor& to, int64_t to_columns, bool accumulate);

}  // namespace crema

// The least and the largest value of each row of a matrix.
#pragma once

#include "device/context.h"
#include "tensor/tensor.h"

namespace crema {

// Bytes for the results of pieces of rows. size: elements of a row.
size_t extremes_workspace(int64_t rows, int64_t size);

// lowest[k] = min(0, smallest value of row k), highest[k] = max(0, largest value); NaN is passed over. x: its
// elements in memory, divided into rows.
// lowest, highest: `rows` elements of float64 where x is float64, otherwise of float32.
void extremes(Context& context, const Tensor& x, int64_t rows, const Tensor& lowest,
              const Tensor& highest, const Tensor& workspace);

}  // namespace crema

// The implementations of reorder(), and a transposition that others use, too.
#pragma once

#include "kernels/core/kernel_registry.h"
#include "kernels/move/reorder.h"

namespace crema {

// For formats that differ in more than Format::points, or dtypes that differ.
extern KernelsOf<decltype(reorder)> reorder_kernels;

// CPU: transposes each of `count` matrices of rows x columns elements of `size` bytes.
void transpose(const void* from, void* to, int64_t count, int64_t rows, int64_t columns,
               size_t size);

}  // namespace crema

// Limits for the shapes in a file. Shape::count() is the only place that multiplies extents; it
// throws an Error if one is negative or the product exceeds kMaxValues.
#pragma once

#include "tensor/shape.h"

namespace crema {

// The most axes that a Caffe blob can have.
constexpr int kMaxBlobAxes = 32;
// More values than fit into any memory; sizes in bytes, and sums of them, still fit 64 bits.
constexpr int64_t kMaxValues = int64_t{1} << 48;

// True when no extent is negative and there are at most `maximum` values; never an Error. Readers
// check a claim against the size of its file before they allocate memory for it.
bool at_most(const Shape& shape, int64_t maximum);

}  // namespace crema

// What a file claims to hold, against what there can be. Shape::count() multiplies extents, with an
// Error where one is negative or there are more than kMostValues; nobody else does.
#pragma once

#include "tensor/shape.h"

namespace crema {

// As many axes as a blob of Caffe's can have.
constexpr int kMostBlobAxes = 32;
// No memory holds more values; and sizes in bytes, and sums of them, stay within 64 bits.
constexpr int64_t kMostValues = int64_t{1} << 48;

// Whether no extent is negative and there are at most `most` values, without an Error. So a claim
// is held against what its file has room for, before memory is taken for it.
bool at_most(const Shape& shape, int64_t most);

}  // namespace crema

// Arguments of operators that change shapes, alike for constants and blobs.
#pragma once

#include <vector>

#include "exchange/onnx/operator_import.h"

namespace crema {

// The extents that Reshape, Flatten, Squeeze, Unsqueeze give input 0.
std::vector<int64_t> reshaped_extents(const OperatorImport& op);

// A part of an axis: positions first, first + step, ... in `count`.
struct SlicedAxis {
  int axis = 0;
  int64_t first = 0, step = 1, count = 0;
};
// What Slice takes of input 0, one entry for each axis that it names.
std::vector<SlicedAxis> sliced_axes(const OperatorImport& op);

// The order of axes that Transpose gives input 0.
std::vector<int64_t> transposed_order(const OperatorImport& op);

// The parts of an axis that Split gives.
std::vector<int64_t> split_parts(const OperatorImport& op, int64_t extent);

// The axes over which Reduce... runs, in order.
std::vector<int> reduced_axes(const OperatorImport& op);

// Elements of input 0 at positions of the result's shape.
OnnxTensor picked(const OnnxTensor& from, const Shape& shape, int64_t first,
                  const std::vector<int64_t>& steps);

}  // namespace crema

// Loops over the elements of several operands, as the C structure walk describes them.
#pragma once

#include <string>
#include <vector>

#include "exchange/c/operator_emit.h"

namespace crema {

// The axes of a loop, slowest first, and the steps of up to three operands along each.
struct CWalk {
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> steps;

  // Joins axes that all operands go through in one step, and gives the structure's fields. Error for
  // more axes than the structure has.
  CFields fields() const;
};

// How far apart neighbours along each axis are.
std::vector<int64_t> contiguous_steps(const Shape& shape);

// Steps through an operand of this shape that is laid along `result` as ONNX broadcasts: 0 along axes
// on which it has one element.
std::vector<int64_t> steps_along(const Shape& operand, const Shape& result);

// The shape that operands of these shapes have together. Error if they do not fit.
Shape common_shape(const std::vector<Shape>& shapes);

// The axis of the input of a Transpose that becomes each axis of its result.
std::vector<int64_t> transposed_order(const OperatorEmit& op);

// The extents of a Split's results along its axis.
std::vector<int64_t> split_extents(const OperatorEmit& op, int axis);

// The part of its input that a Slice takes.
struct CSlice {
  Shape result;
  std::vector<int64_t> steps;  // through the input
  int64_t from = 0;            // where it begins
  bool is_piece = true;        // it is contiguous
};
CSlice read_slice(const OperatorEmit& op);

// Copies x to y, in steps through both; `shift`: where y begins.
CCall& copy_elements(OperatorEmit& op, const CArgument& y, const CArgument& x, CType type,
                     const CWalk& walk, int64_t from = 0, int64_t to = 0);

}  // namespace crema

#include "exchange/c/operators/walk.h"

#include <algorithm>

namespace crema {

namespace {

constexpr size_t kAxes = 6;  // AXES of walk.c

}  // namespace

CFields CWalk::fields() const {
  std::vector<int64_t> joined;
  std::vector<std::vector<int64_t>> joined_steps(steps.size());
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 1) continue;
    bool joins = !joined.empty();
    for (size_t i = 0; joins && i < steps.size(); ++i)
      joins = joined_steps[i].back() == steps[i][axis] * extents[axis];
    if (joins) {
      joined.back() *= extents[axis];
      for (size_t i = 0; i < steps.size(); ++i) joined_steps[i].back() = steps[i][axis];
      continue;
    }
    joined.push_back(extents[axis]);
    for (size_t i = 0; i < steps.size(); ++i) joined_steps[i].push_back(steps[i][axis]);
  }
  require(joined.size() <= kAxes, "it has ", joined.size(),
          " axes that differ, and C functions have ", kAxes, " at most");
  const size_t missing = kAxes - joined.size();
  joined.insert(joined.begin(), missing, 1);
  for (std::vector<int64_t>& list : joined_steps) {
    // Along a single element any step will do; the innermost one is a copy.
    list.insert(list.begin(), missing, missing == kAxes ? 1 : 0);
  }
  CFields fields;
  fields.add("extent", joined);
  const char* const names[] = {"a", "b", "c"};
  for (size_t i = 0; i < steps.size(); ++i) fields.add(names[i], joined_steps[i]);
  return fields;
}

std::vector<int64_t> contiguous_steps(const Shape& shape) {
  std::vector<int64_t> steps;
  for (int axis = 0; axis < shape.axes(); ++axis) steps.push_back(shape.count(axis + 1));
  return steps;
}

std::vector<int64_t> steps_along(const Shape& operand, const Shape& result) {
  const int missing = result.axes() - operand.axes();
  std::vector<int64_t> steps(missing, 0);
  for (int axis = 0; axis < operand.axes(); ++axis)
    steps.push_back(operand[axis] == 1 ? 0 : operand.count(axis + 1));
  return steps;
}

Shape common_shape(const std::vector<Shape>& shapes) {
  int axes = 0;
  for (const Shape& shape : shapes) axes = std::max(axes, shape.axes());
  Shape result(std::vector<int64_t>(axes, 1));
  for (const Shape& shape : shapes) {
    for (int axis = 0; axis < shape.axes(); ++axis) {
      int64_t& extent = result[axis + axes - shape.axes()];
      require(extent == shape[axis] || extent == 1 || shape[axis] == 1, "operands of ",
              shapes[0].brief(), " and ", shape.brief(), " do not fit");
      if (extent == 1) extent = shape[axis];
    }
  }
  return result;
}

std::vector<int64_t> transposed_order(const OperatorEmit& op) {
  std::vector<int64_t> order = op.op.ints_of("perm");
  if (!order.empty()) return order;
  for (int64_t axis = op.shape().axes(); axis-- > 0;) order.push_back(axis);
  return order;
}

std::vector<int64_t> split_extents(const OperatorEmit& op, int axis) {
  const std::vector<int64_t> extents = op.op.ints_or_input("split", 1, 13);
  if (!extents.empty()) return extents;
  return std::vector<int64_t>(op.op.outputs(), op.shape()[axis] / op.op.outputs());
}

CCall& copy_elements(OperatorEmit& op, const CArgument& y, const CArgument& x, CType type,
                     const CWalk& walk, int64_t from, int64_t to) {
  const std::string name = name_for("copy", type);
  CArgument target = y, source = x;
  target.shift = to;
  source.shift = from;
  return op.call_instance("copy", name, cat("COPY(", name, ", ", c_name(type), ")"),
                          {target, source}, "walk", walk.fields());
}

}  // namespace crema

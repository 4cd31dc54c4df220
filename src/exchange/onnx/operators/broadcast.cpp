#include "exchange/onnx/operators/broadcast.h"

#include <algorithm>

#include "base/error.h"

namespace crema {

Shape broadcast_shape(const Shape& a, const Shape& b) {
  const int axes = std::max(a.axes(), b.axes());
  Shape result;
  for (int axis = 0; axis < axes; ++axis) {
    const int of_a = axis - axes + a.axes(), of_b = axis - axes + b.axes();
    const int64_t extent_a = of_a < 0 ? 1 : a[of_a], extent_b = of_b < 0 ? 1 : b[of_b];
    require(extent_a == extent_b || extent_a == 1 || extent_b == 1, "shapes ", a.brief(), " and ",
            b.brief(), " do not go together");
    result.push_back(extent_a == 1 ? extent_b : extent_a);
  }
  return result;
}

std::vector<int64_t> dense_steps(const Shape& shape) {
  std::vector<int64_t> steps(shape.axes(), 1);
  for (int axis = shape.axes() - 2; axis >= 0; --axis)
    steps[axis] = steps[axis + 1] * shape[axis + 1];
  return steps;
}

std::vector<int64_t> broadcast_steps(const Shape& from, const Shape& to) {
  const std::vector<int64_t> dense = dense_steps(from);
  std::vector<int64_t> steps(to.axes());
  const int added = to.axes() - from.axes();
  for (int axis = 0; axis < from.axes(); ++axis)
    if (from[axis] != 1) steps[axis + added] = dense[axis];
  return steps;
}

void Walk::next() {
  for (int axis = shape_.axes() - 1; axis >= 0; --axis) {
    for (size_t i = 0; i < steps_.size(); ++i) offsets_[i] += steps_[i][axis];
    if (++at_[axis] < shape_[axis]) return;
    for (size_t i = 0; i < steps_.size(); ++i) offsets_[i] -= steps_[i][axis] * at_[axis];
    at_[axis] = 0;
  }
}

}  // namespace crema

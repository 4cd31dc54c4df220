#include "tensor/shape.h"

#include "base/error.h"

namespace crema {

int64_t Shape::count(int from, int to) const {
  int64_t product = 1;
  for (int axis = from; axis < to; ++axis) product *= dims_[axis];
  return product;
}

int Shape::canonical_axis(int axis) const {
  if (axis < -axes() || axis >= axes())
    fail("axis ", axis, " is out of range for a blob of ", axes(), " axes (", brief(), ")");
  return axis < 0 ? axis + axes() : axis;
}

std::string Shape::str() const {
  std::string text;
  for (int64_t extent : dims_) text += std::to_string(extent) + " ";
  return text + "(" + std::to_string(count()) + ")";
}

std::string Shape::brief() const {
  if (dims_.empty()) return "scalar";
  std::string text;
  for (int64_t extent : dims_) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

}  // namespace crema

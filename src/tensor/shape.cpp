#include "tensor/shape.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/shape_limits.h"

namespace crema {
namespace {

constexpr int64_t kNegative = -1, kTooMany = kMaxValues + 1;

// The product of the extents of axes [from, to); kTooMany if it is too large, kNegative if an
// extent is negative.
int64_t product(const std::vector<int64_t>& extents, int from, int to) {
  int64_t values = 1;
  for (int axis = from; axis < to; ++axis) {
    const int64_t extent = extents[axis];
    if (extent < 0) return kNegative;
    if (__builtin_mul_overflow(values, extent, &values) || values > kTooMany) values = kTooMany;
  }
  return values;
}

}  // namespace

int64_t Shape::count(int from, int to) const {
  const int64_t values = product(dims_, from, to);
  if (values == kNegative) fail("the shape ", brief(), " has a negative extent");
  if (values == kTooMany) fail("the shape ", brief(), " has more than 2^48 values");
  return values;
}

bool at_most(const Shape& shape, int64_t maximum) {
  const int64_t values = product(shape.dims(), 0, shape.axes());
  return values != kNegative && values != kTooMany && values <= maximum;
}

void Shape::refuse(int axis) const {
  fail("a blob of ", axes(), " axes (", brief(), ") has no axis ", axis, "; please report this");
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
  for (int axis = 0; axis < std::min(axes(), kMaxBlobAxes); ++axis)
    text += (axis == 0 ? "" : "x") + std::to_string(dims_[axis]);
  return axes() <= kMaxBlobAxes ? text : cat(text, "x... (", axes(), " axes)");
}

}  // namespace crema

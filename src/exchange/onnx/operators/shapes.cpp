#include "exchange/onnx/operators/shapes.h"

#include <algorithm>
#include <numeric>

#include "exchange/onnx/operators/broadcast.h"

namespace crema {

namespace {

std::vector<int64_t> extents_of_reshape(const OperatorImport& op) {
  const Shape& x = op.shape();
  std::vector<int64_t> extents = op.ints(1, "the shape");
  const bool zero_is_zero = op.int_of("allowzero", 0) != 0;
  int rest = -1;
  Shape known;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0 && !zero_is_zero) {
      require(static_cast<int>(i) < x.axes(), "extent 0 at position ", i, " keeps axis ", i,
              ", but there are ", x.axes());
      extents[i] = x[static_cast<int>(i)];
    }
    require(extents[i] >= -1, "extent ", extents[i], " is negative");
    if (extents[i] == -1) {
      require(rest < 0, "there are several extents -1");
      rest = static_cast<int>(i);
    } else {
      known.push_back(extents[i]);
    }
  }
  if (rest >= 0) {
    const int64_t values = known.count();
    require(values > 0 && x.count() % values == 0, x.count(), " values do not fill the shape ",
            Shape(extents).brief());
    extents[rest] = x.count() / values;
  }
  return extents;
}

std::vector<int64_t> extents_without(const OperatorImport& op) {
  const Shape& x = op.shape();
  std::vector<int64_t> result;
  std::vector<bool> gone(x.axes());
  if (op.given("axes", 1, 13)) {
    for (const int64_t axis : op.ints_or_input("axes", 1, 13)) {
      const int at = OperatorImport::axis_in(axis, x.axes());
      require(x[at] == 1, "axis ", axis, " has extent ", x[at], ", so it cannot be left out");
      gone[at] = true;
    }
  } else {
    for (int axis = 0; axis < x.axes(); ++axis) gone[axis] = x[axis] == 1;
  }
  for (int axis = 0; axis < x.axes(); ++axis)
    if (!gone[axis]) result.push_back(x[axis]);
  return result;
}

std::vector<int64_t> extents_with(const OperatorImport& op) {
  const Shape& x = op.shape();
  const std::vector<int64_t> axes = op.ints_or_input("axes", 1, 13);
  const int all = x.axes() + static_cast<int>(axes.size());
  std::vector<int64_t> result(all, 0);
  for (const int64_t axis : axes) {
    int64_t& extent = result[OperatorImport::axis_in(axis, all)];
    require(extent == 0, "axis ", axis, " is named twice");
    extent = 1;
  }
  int next = 0;
  for (int64_t& extent : result)
    if (extent == 0) extent = x[next++];
  return result;
}

}  // namespace

std::vector<int64_t> reshaped_extents(const OperatorImport& op) {
  const Shape& x = op.shape();
  std::vector<int64_t> extents;
  if (op.type() == "Squeeze") {
    extents = extents_without(op);
  } else if (op.type() == "Unsqueeze") {
    extents = extents_with(op);
  } else if (op.type() == "Flatten") {
    const int64_t given = op.int_of("axis", 1);
    const int axis = given == x.axes() ? x.axes() : OperatorImport::axis_in(given, x.axes());
    extents = {x.count(0, axis), x.count(axis)};
  } else {
    extents = extents_of_reshape(op);
  }
  require(Shape(extents).count() == x.count(), x.count(), " values do not fill the shape ",
          Shape(extents).brief());
  return extents;
}

std::vector<SlicedAxis> sliced_axes(const OperatorImport& op) {
  const Shape& x = op.shape();
  const std::vector<int64_t> starts = op.ints_or_input("starts", 1, 10);
  const std::vector<int64_t> ends = op.ints_or_input("ends", 2, 10);
  std::vector<int64_t> axes = op.ints_or_input("axes", 3, 10);
  std::vector<int64_t> steps;
  if (op.opset() >= 10 && op.has(4)) steps = op.ints(4, "steps");
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  require(
      starts.size() == ends.size() && starts.size() == axes.size() && starts.size() == steps.size(),
      "starts, ends, axes and steps have different lengths");
  std::vector<SlicedAxis> result;
  for (size_t i = 0; i < axes.size(); ++i) {
    SlicedAxis part;
    part.axis = OperatorImport::axis_in(axes[i], x.axes());
    part.step = steps[i];
    const int64_t extent = x[part.axis];
    require(std::none_of(result.begin(), result.end(),
                         [&](const SlicedAxis& other) { return other.axis == part.axis; }),
            "axis ", axes[i], " is named twice");
    require(part.step != 0 && part.step >= -extent - kMaxOnnxElements, "step ", part.step,
            " is none");
    const auto within = [&](int64_t at, int64_t low, int64_t high) {
      if (at < 0) at = at < -extent ? -1 : at + extent;
      return std::clamp(at, low, high);
    };
    const bool forward = part.step > 0;
    part.first = forward ? within(starts[i], 0, extent) : within(starts[i], -1, extent - 1);
    const int64_t end = forward ? within(ends[i], 0, extent) : within(ends[i], -1, extent - 1);
    const int64_t way = forward ? end - part.first : part.first - end;
    const int64_t stride = std::min(std::abs(part.step), std::max<int64_t>(extent, 1));
    part.step = forward ? stride : -stride;
    part.count = way <= 0 ? 0 : (way + stride - 1) / stride;
    result.push_back(part);
  }
  return result;
}

std::vector<int64_t> transposed_order(const OperatorImport& op) {
  std::vector<int64_t> order = op.ints_of("perm");
  const int axes = op.axes();
  if (order.empty()) {
    for (int axis = axes - 1; axis >= 0; --axis) order.push_back(axis);
    return order;
  }
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (int axis = 0; axis < static_cast<int>(sorted.size()); ++axis)
    require(sorted[axis] == axis && static_cast<int>(order.size()) == axes, "perm is no order of ",
            axes, " axes");
  return order;
}

std::vector<int64_t> split_parts(const OperatorImport& op, int64_t extent) {
  std::vector<int64_t> parts = op.ints_or_input("split", 1, 13);
  const int64_t count = op.outputs();
  if (parts.empty()) {
    const int64_t each = (extent + count - 1) / count;
    for (int64_t i = 0; i < count; ++i)
      parts.push_back(std::clamp<int64_t>(extent - i * each, 0, each));
  }
  require(static_cast<int64_t>(parts.size()) == count, parts.size(), " parts for ", count,
          " outputs");
  int64_t rest = extent;
  for (const int64_t part : parts) {
    require(part > 0, "part ", part, " is empty");
    require(part <= rest, "the parts do not add up to ", extent);
    rest -= part;
  }
  require(rest == 0, "the parts do not add up to ", extent);
  return parts;
}

std::vector<int> reduced_axes(const OperatorImport& op) {
  const int since = op.type() == "ReduceSum" ? 13 : 18;
  std::vector<int> axes;
  for (const int64_t axis : op.ints_or_input("axes", 1, since))
    axes.push_back(OperatorImport::axis_in(axis, op.axes()));
  if (axes.empty() && op.int_of("noop_with_empty_axes", 0) == 0) {
    axes.resize(op.axes());
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

OnnxTensor picked(const OnnxTensor& from, const Shape& shape, int64_t first,
                  const std::vector<int64_t>& steps) {
  check_folded(shape);
  OnnxTensor result;
  result.is_int = from.is_int;
  result.resize(shape);
  Walk walk(shape, {steps});
  for (int64_t i = 0, n = shape.count(); i < n; ++i, walk.next()) {
    const int64_t at = first + walk.offset(0);
    if (from.is_int)
      result.ints[i] = from.ints[at];
    else
      result.floats[i] = from.floats[at];
  }
  return result;
}

}  // namespace crema

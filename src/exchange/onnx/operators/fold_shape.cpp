// Operators that cut, join and rearrange constants: most of them compute shapes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "exchange/onnx/operator_import.h"
#include "exchange/onnx/operators/broadcast.h"
#include "exchange/onnx/operators/shapes.h"

namespace crema {
namespace {

// Shape is a constant even of a blob.
void read_shape(OperatorImport& op) {
  const Shape& x = op.shape();
  const auto within = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + x.axes() : at, 0, x.axes());
  };
  const int64_t first = within(op.int_of("start", 0)), end = within(op.int_of("end", x.axes()));
  std::vector<int64_t> extents;
  for (int64_t axis = first; axis < end; ++axis) extents.push_back(x[static_cast<int>(axis)]);
  op.give(OnnxTensor::of_ints(std::move(extents)));
}
IMPORT_OPERATOR(Shape, read_shape);

void read_size(OperatorImport& op) {
  OnnxTensor size;
  size.is_int = true;
  size.ints = {op.shape().count()};
  op.give(std::move(size));
}
IMPORT_OPERATOR(Size, read_size);

void fold_identity(OperatorImport& op) { op.give(op.constant(0, "the operand")); }
FOLD_OPERATOR(Identity, fold_identity);

void fold_reshape(OperatorImport& op) {
  OnnxTensor result = op.constant(0, "the operand");
  result.shape = Shape(reshaped_extents(op));
  op.give(std::move(result));
}
FOLD_OPERATOR(Reshape, fold_reshape);
FOLD_OPERATOR(Flatten, fold_reshape);
FOLD_OPERATOR(Squeeze, fold_reshape);
FOLD_OPERATOR(Unsqueeze, fold_reshape);

void fold_transpose(OperatorImport& op) {
  const OnnxTensor& x = op.constant(0, "the operand");
  const std::vector<int64_t> dense = dense_steps(x.shape);
  Shape shape;
  std::vector<int64_t> steps;
  for (const int64_t axis : transposed_order(op)) {
    shape.push_back(x.shape[static_cast<int>(axis)]);
    steps.push_back(dense[axis]);
  }
  op.give(picked(x, shape, 0, steps));
}
FOLD_OPERATOR(Transpose, fold_transpose);

void fold_slice(OperatorImport& op) {
  const OnnxTensor& x = op.constant(0, "the operand");
  Shape shape = x.shape;
  std::vector<int64_t> steps = dense_steps(shape);
  int64_t first = 0;
  for (const SlicedAxis& part : sliced_axes(op)) {
    first += part.first * steps[part.axis];
    steps[part.axis] *= part.step;
    shape[part.axis] = part.count;
  }
  op.give(picked(x, shape, shape.count() == 0 ? 0 : first, steps));
}
FOLD_OPERATOR(Slice, fold_slice);

void fold_split(OperatorImport& op) {
  const OnnxTensor& x = op.constant(0, "the operand");
  const int axis = OperatorImport::axis_in(op.int_of("axis", 0), x.shape.axes());
  const std::vector<int64_t> steps = dense_steps(x.shape);
  int64_t first = 0;
  const std::vector<int64_t> parts = split_parts(op, x.shape[axis]);
  for (size_t i = 0; i < parts.size(); ++i) {
    Shape shape = x.shape;
    shape[axis] = parts[i];
    op.give(picked(x, shape, first * steps[axis], steps), static_cast<int>(i));
    first += parts[i];
  }
}
FOLD_OPERATOR(Split, fold_split);

void fold_expand(OperatorImport& op) {
  const OnnxTensor& x = op.constant(0, "the operand");
  const Shape shape = broadcast_shape(x.shape, Shape(op.ints(1, "the shape")));
  op.give(picked(x, shape, 0, broadcast_steps(x.shape, shape)));
}
FOLD_OPERATOR(Expand, fold_expand);

void fold_concat(OperatorImport& op) {
  OnnxTensor result = op.constant(0, "a part");
  const int axis = OperatorImport::axis_in(op.int_of("axis", 0), result.shape.axes());
  result.shape[axis] = 0;
  int64_t outer = 1;
  for (int before = 0; before < axis; ++before) outer *= result.shape[before];
  result.ints.clear();
  result.floats.clear();
  for (int i = 0; i < op.inputs(); ++i) {
    const OnnxTensor& part = op.constant(i, "a part");
    require(part.shape.axes() == result.shape.axes() && part.is_int == result.is_int,
            "its parts have different types or numbers of axes");
    for (int other = 0; other < part.shape.axes(); ++other)
      require(other == axis || part.shape[other] == result.shape[other],
              "its parts have different extents on axis ", other);
    result.shape[axis] += part.shape[axis];
  }
  check_folded(result.shape);
  for (int64_t row = 0; row < outer; ++row) {
    for (int i = 0; i < op.inputs(); ++i) {
      const OnnxTensor& part = op.constant(i, "a part");
      const int64_t size = part.count() / std::max<int64_t>(outer, 1);
      if (part.is_int)
        result.ints.insert(result.ints.end(), part.ints.begin() + row * size,
                           part.ints.begin() + (row + 1) * size);
      else
        result.floats.insert(result.floats.end(), part.floats.begin() + row * size,
                             part.floats.begin() + (row + 1) * size);
    }
  }
  op.give(std::move(result));
}
FOLD_OPERATOR(Concat, fold_concat);

void fold_gather(OperatorImport& op) {
  const OnnxTensor& x = op.constant(0, "the operand");
  const OnnxTensor& index = op.constant(1, "the index");
  const int axis = OperatorImport::axis_in(op.int_of("axis", 0), x.shape.axes());
  Shape shape;
  for (int before = 0; before < axis; ++before) shape.push_back(x.shape[before]);
  for (const int64_t extent : index.shape.dims()) shape.push_back(extent);
  for (int behind = axis + 1; behind < x.shape.axes(); ++behind) shape.push_back(x.shape[behind]);
  check_folded(shape);
  const int64_t extent = x.shape[axis], inner = x.shape.count(axis + 1);
  OnnxTensor result;
  result.is_int = x.is_int;
  for (int64_t outer = 0; outer < x.shape.count(0, axis); ++outer) {
    for (int64_t at : index.as_ints()) {
      require(at >= -extent && at < extent, "index ", at, " is out of range for ", extent);
      const int64_t from = (outer * extent + (at < 0 ? at + extent : at)) * inner;
      if (x.is_int)
        result.ints.insert(result.ints.end(), x.ints.begin() + from, x.ints.begin() + from + inner);
      else
        result.floats.insert(result.floats.end(), x.floats.begin() + from,
                             x.floats.begin() + from + inner);
    }
  }
  result.resize(shape);
  op.give(std::move(result));
}
FOLD_OPERATOR(Gather, fold_gather);

double scattered(const std::string& reduction, double before, double update) {
  if (reduction == "add") return before + update;
  if (reduction == "mul") return before * update;
  if (reduction == "max") return std::max(before, update);
  if (reduction == "min") return std::min(before, update);
  require(reduction == "none", "reduction is \"", reduction, "\"");
  return update;
}

// Parts of x, at these indices of its first axes, get other values.
void fold_scatter_nd(OperatorImport& op) {
  OnnxTensor result = op.constant(0, "the operand");
  const OnnxTensor &at = op.constant(1, "the indices"), &updates = op.constant(2, "the updates");
  const int last = at.shape.axes() - 1;
  require(last >= 0 && at.shape[last] <= result.shape.axes(), "indices of ", at.shape.brief(),
          " for ", result.shape.brief());
  const auto named = static_cast<int>(at.shape[last]);
  const int64_t parts = at.shape.count(0, last), each = result.shape.count(named);
  require(updates.count() == parts * each, "updates of ", updates.shape.brief(), " for ", parts,
          " parts of ", each, " values");
  const std::vector<int64_t> dense = dense_steps(result.shape), indices = at.as_ints();
  const std::string reduction = op.string_of("reduction", "none");
  for (int64_t part = 0; part < parts; ++part) {
    int64_t first = 0;
    for (int axis = 0; axis < named; ++axis) {
      const int64_t extent = result.shape[axis], index = indices[part * named + axis];
      require(index >= -extent && index < extent, "index ", index, " of axis ", axis, " with ",
              extent, " positions");
      first += (index < 0 ? index + extent : index) * dense[axis];
    }
    for (int64_t i = 0; i < each; ++i) {
      const double value = updates.at(part * each + i);
      if (result.is_int)
        result.ints[first + i] =
            truncated(scattered(reduction, static_cast<double>(result.ints[first + i]), value));
      else
        result.floats[first + i] =
            static_cast<float>(scattered(reduction, result.floats[first + i], value));
    }
  }
  op.give(std::move(result));
}
FOLD_OPERATOR(ScatterND, fold_scatter_nd);

void fold_constant_of_shape(OperatorImport& op) {
  OnnxTensor result = OnnxTensor::scalar(0);
  if (op.has_attribute("value")) result = op.tensor_of("value");
  require(result.count() == 1, "its value has ", result.count(), " elements");
  const Shape shape(op.ints(0, "the shape"));
  op.give(picked(result, shape, 0, std::vector<int64_t>(shape.axes())));
}
FOLD_OPERATOR(ConstantOfShape, fold_constant_of_shape);

void fold_range(OperatorImport& op) {
  const OnnxTensor &first = op.constant(0, "the start"), &end = op.constant(1, "the limit"),
                   &step = op.constant(2, "the step");
  require(first.count() == 1 && end.count() == 1 && step.count() == 1 && step.at(0) != 0,
          "its start, limit and step are no numbers, or the step is 0");
  const double exact = std::ceil((end.at(0) - first.at(0)) / step.at(0));
  require(exact < static_cast<double>(kMaxFoldedElements), "it has too many elements");
  OnnxTensor result;
  result.is_int = first.is_int;
  result.resize(Shape{std::max<int64_t>(truncated(exact), 0)});
  for (int64_t i = 0; i < result.count(); ++i) {
    if (result.is_int)
      result.ints[i] = first.ints[0] + i * step.as_ints()[0];
    else
      result.floats[i] = static_cast<float>(first.at(0) + static_cast<double>(i) * step.at(0));
  }
  op.give(std::move(result));
}
FOLD_OPERATOR(Range, fold_range);

void fold_tile(OperatorImport& op) {
  const OnnxTensor& x = op.constant(0, "the operand");
  const std::vector<int64_t> copies = op.ints(1, "the repeats");
  require(static_cast<int>(copies.size()) == x.shape.axes(), copies.size(), " repeats for ",
          x.shape.axes(), " axes");
  Shape apart, result_shape;
  std::vector<int64_t> steps;
  const std::vector<int64_t> dense = dense_steps(x.shape);
  for (int axis = 0; axis < x.shape.axes(); ++axis) {
    apart.push_back(copies[axis]);
    apart.push_back(x.shape[axis]);
    steps.push_back(0);
    steps.push_back(dense[axis]);
  }
  check_folded(apart);
  for (int axis = 0; axis < x.shape.axes(); ++axis)
    result_shape.push_back(copies[axis] * x.shape[axis]);
  OnnxTensor result = picked(x, apart, 0, steps);
  result.shape = result_shape;
  op.give(std::move(result));
}
FOLD_OPERATOR(Tile, fold_tile);

// Keeps a triangle of matrices.
void fold_trilu(OperatorImport& op) {
  OnnxTensor result = op.constant(0, "the operand");
  const int axes = result.shape.axes();
  require(axes >= 2, "its operand is no matrix");
  const int64_t shift = op.has(1) ? truncated(op.number(1, "k")) : 0;
  const bool upper = op.int_of("upper", 1) != 0;
  const int64_t rows = result.shape[axes - 2], columns = result.shape[axes - 1];
  for (int64_t i = 0, n = result.count(); i < n; ++i) {
    const int64_t above = i % columns - i / columns % rows - shift;
    if (upper ? above >= 0 : above <= 0) continue;
    if (result.is_int)
      result.ints[i] = 0;
    else
      result.floats[i] = 0;
  }
  op.give(std::move(result));
}
FOLD_OPERATOR(Trilu, fold_trilu);

void fold_reduction(OperatorImport& op) {
  const OnnxTensor& x = op.constant(0, "the operand");
  const std::vector<int> axes = reduced_axes(op);
  const bool keeps = op.int_of("keepdims", 1) != 0;
  Shape kept = x.shape, shape;
  for (const int axis : axes) kept[axis] = 1;
  for (int axis = 0; axis < x.shape.axes(); ++axis)
    if (keeps || std::find(axes.begin(), axes.end(), axis) == axes.end())
      shape.push_back(kept[axis]);
  constexpr double kNone = std::numeric_limits<double>::infinity();  // for reductions of nothing
  std::vector<double> values(kept.count(), op.type() == "ReduceProd"  ? 1
                                           : op.type() == "ReduceMax" ? -kNone
                                           : op.type() == "ReduceMin" ? kNone
                                                                      : 0);
  std::vector<bool> begun(kept.count());
  Walk walk(x.shape, {broadcast_steps(kept, x.shape)});
  for (int64_t i = 0, n = x.count(); i < n; ++i, walk.next()) {
    double& value = values[walk.offset(0)];
    const double next = x.at(i);
    if (!begun[walk.offset(0)])
      value = next;
    else if (op.type() == "ReduceProd")
      value *= next;
    else if (op.type() == "ReduceMax")
      value = std::max(value, next);
    else if (op.type() == "ReduceMin")
      value = std::min(value, next);
    else
      value += next;
    begun[walk.offset(0)] = true;
  }
  OnnxTensor result;
  result.is_int = x.is_int;
  result.resize(shape);
  const double share = op.type() == "ReduceMean"
                           ? static_cast<double>(kept.count()) / static_cast<double>(x.count())
                           : 1;
  for (int64_t i = 0; i < result.count(); ++i) {
    if (result.is_int)
      result.ints[i] = truncated(values[i] * share);
    else
      result.floats[i] = static_cast<float>(values[i] * share);
  }
  op.give(std::move(result));
}
FOLD_OPERATOR(ReduceProd, fold_reduction);
FOLD_OPERATOR(ReduceSum, fold_reduction);
FOLD_OPERATOR(ReduceMean, fold_reduction);
FOLD_OPERATOR(ReduceMax, fold_reduction);
FOLD_OPERATOR(ReduceMin, fold_reduction);

}  // namespace
}  // namespace crema

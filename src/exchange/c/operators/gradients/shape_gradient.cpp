// Gradients of operators that arrange elements in other ways.
#include "exchange/c/gradient_emit.h"
#include "exchange/c/operators/walk.h"

namespace crema {
namespace {

void emit_view(GradientEmit& op) { op.pass_on(0, op.dy()); }
EMIT_GRADIENT(Reshape, emit_view);
EMIT_GRADIENT(Flatten, emit_view);
EMIT_GRADIENT(Squeeze, emit_view);
EMIT_GRADIENT(Unsqueeze, emit_view);
EMIT_GRADIENT(Identity, emit_view);

void emit_transpose(GradientEmit& op) {
  const Shape& x = op.shape();
  const std::vector<int64_t> steps = contiguous_steps(x);
  std::vector<int64_t> extents, to;
  for (const int64_t axis : transposed_order(op)) {
    extents.push_back(x[static_cast<int>(axis)]);
    to.push_back(steps[axis]);
  }
  const CArgument dy = op.dy();
  copy_elements(op, op.gradient(0), dy, CType::real,
                {extents, {contiguous_steps(Shape(extents)), to}}, dy.shift);
}
EMIT_GRADIENT(Transpose, emit_transpose);

void emit_concat(GradientEmit& op) {
  const int axis = op.op.axis_in(op.op.int_of("axis", 0), op.shape().axes());
  Shape result = op.shape();
  result[axis] = 0;
  for (int i = 0; i < op.op.inputs(); ++i) result[axis] += op.shape(i)[axis];
  CArgument dy = op.dy();
  for (int i = 0; i < op.op.inputs(); ++i) {
    const Shape part = op.shape(i);
    if (op.needs(i)) {
      if (part.count(0, axis) == 1) {
        op.pass_on(i, dy);
      } else {
        copy_elements(op, op.gradient(i), dy, CType::real,
                      {part.dims(), {contiguous_steps(result), contiguous_steps(part)}}, dy.shift);
      }
    }
    dy.shift += part.count(axis);
  }
}
EMIT_GRADIENT(Concat, emit_concat);

// The concatenation of the parts' gradients; it is zero where nothing reads a part.
void emit_split(GradientEmit& op) {
  const Shape& x = op.shape();
  const int axis = op.op.axis_in(op.op.int_of("axis", 0), x.axes());
  const std::vector<int64_t> extents = split_extents(op, axis);
  std::vector<CArgument> parts;
  bool whole = true;
  for (int i = 0; i < op.op.outputs(); ++i) {
    parts.push_back(op.has_gradient(i) ? op.dy(i) : op.text("NULL"));
    whole = whole && op.has_gradient(i);
  }
  const CArgument to = op.gradient(0);
  if (!whole) op.call("fill", {to, op.number(x.count()), op.number(0.f)});
  int64_t at = 0;
  for (int i = 0; i < op.op.outputs(); ++i) {
    Shape part = x;
    part[axis] = extents[i];
    if (op.has_gradient(i))
      copy_elements(op, to, parts[i], CType::real,
                    {part.dims(), {contiguous_steps(part), contiguous_steps(x)}}, parts[i].shift,
                    at);
    at += part.count(axis);
  }
}
EMIT_GRADIENT(Split, emit_split);

// Zero where nothing was taken.
void emit_slice(GradientEmit& op) {
  const CSlice slice = read_slice(op);
  const CArgument dy = op.dy(), to = op.gradient(0);
  op.call("fill", {to, op.number(op.shape().count()), op.number(0.f)});
  copy_elements(op, to, dy, CType::real,
                {slice.result.dims(), {contiguous_steps(slice.result), slice.steps}}, dy.shift,
                slice.from);
}
EMIT_GRADIENT(Slice, emit_slice);

}  // namespace
}  // namespace crema

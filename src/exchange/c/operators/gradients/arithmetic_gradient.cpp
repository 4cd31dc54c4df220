// Gradients of sums, products and concatenations.
#include "exchange/c/gradient_emit.h"
#include "exchange/c/operators/walk.h"

namespace crema {
namespace {

// The operand's part of a gradient in the shape of the result: itself, or sums along the axes on which the
// operand has one element.
void give_part(GradientEmit& op, int input, CArgument part, const Shape& result) {
  const Shape& operand = op.shape(input);
  part.written = false;
  if (operand.count() == result.count()) return op.pass_on(input, part);
  op.call_instance(
      "reduce", "sum", "REDUCE(sum, 0, x, v + w, v)",
      {op.gradient(input), part, op.number(operand.count()), op.number(int64_t{1})}, "walk",
      CWalk{result.dims(), {contiguous_steps(result), steps_along(operand, result)}}.fields());
}

void emit_add(GradientEmit& op) {
  const Shape result = common_shape({op.shape(0), op.shape(1)});
  require(op.op.inputs() == 2, "it adds ", op.op.inputs(), " values, and gradients are of two");
  const CArgument dy = op.dy();
  for (int i = 0; i < 2; ++i)
    if (op.needs(i)) give_part(op, i, dy, result);
}
EMIT_GRADIENT(Add, emit_add);

void emit_multiply(GradientEmit& op) {
  const Shape result = common_shape({op.shape(0), op.shape(1)});
  const CArgument dy = op.dy();
  for (int i = 0; i < 2; ++i) {
    if (!op.needs(i)) continue;
    const CWalk walk{result.dims(),
                     {contiguous_steps(result), steps_along(op.shape(1 - i), result)}};
    CArgument part = op.intermediate("part", result);
    part.written = true;
    op.call_instance("binary", "multiply", "BINARY(multiply, float, float, a * b)",
                     {part, dy, op.input(1 - i)}, "walk", walk.fields());
    give_part(op, i, part, result);
  }
}
EMIT_GRADIENT(Mul, emit_multiply);

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

}  // namespace
}  // namespace crema

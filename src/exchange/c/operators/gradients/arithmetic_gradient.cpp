// Gradients of operators on two operands.
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

// The second of two equal values counts as the larger one, as in the forward pass.
void emit_max(GradientEmit& op) {
  require(op.op.inputs() == 2 && op.shape(0) == op.shape(1),
          "gradients are of the larger one of two values with the same shape");
  const CArgument dy = op.dy();
  const char* const functions[] = {"first_larger", "first_not_larger"};
  const char* const conditions[] = {"a > b", "!(a > b)"};
  for (int i = 0; i < 2; ++i)
    if (op.needs(i))
      op.call_instance(
          "choose", functions[i], cat("CHOOSE(", functions[i], ", ", conditions[i], ")"),
          {op.gradient(i), dy, op.input(0), op.input(1), op.number(op.shape().count())});
}
EMIT_GRADIENT(Max, emit_max);

void emit_prelu(GradientEmit& op) {
  const Shape &x = op.shape(), &slopes = op.shape(1);
  const CArgument dy = op.dy();
  CFields fields;
  const int64_t channels = slopes.count() > 1 ? slopes.count() : 1;
  fields.add("samples", x[0]).add("channels", channels).add("positions", x.count(1) / channels);
  if (op.needs(1))
    op.call("prelu_slope_gradient", {op.gradient(1), dy, op.input(0)}, "prelu", fields);
  if (!op.needs(0)) return;
  CCall& call =
      op.call("prelu_gradient", {op.gradient(0), dy, op.input(0), op.input(1)}, "prelu", fields);
  if (dy.shift == 0) call.over = dy.index;
}
EMIT_GRADIENT(PRelu, emit_prelu);

}  // namespace
}  // namespace crema

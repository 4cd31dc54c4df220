// Operators on two or three operands, element by element.
#include "exchange/c/operators/walk.h"

namespace crema {
namespace {

// The expression of a and b; for whole numbers another one, if it differs.
struct Binary {
  const char *operator_name, *function, *expression, *whole = nullptr;
  bool compares = false;
};

constexpr Binary kBinary[] = {
    {"Add", "add", "a + b"},
    {"Sub", "subtract", "a - b"},
    {"Mul", "multiply", "a * b"},
    {"Div", "divide", "a / b"},
    {"Pow", "power", "powf(a, b)"},
    {"Max", "larger", "a > b ? a : b"},
    {"Min", "smaller", "a < b ? a : b"},
    {"Sum", "add", "a + b"},
    {"PRelu", "prelu", "a < 0 ? a * b : a"},
    {"Mod", "modulo", "fmodf(a, b)", "(a % b + b) % b"},
    {"Equal", "equal", "a == b", nullptr, true},
    {"Greater", "greater", "a > b", nullptr, true},
    {"Less", "less", "a < b", nullptr, true},
    {"GreaterOrEqual", "not_less", "a >= b", nullptr, true},
    {"LessOrEqual", "not_greater", "a <= b", nullptr, true},
    {"And", "both", "", "a && b"},
    {"Or", "either", "", "a || b"},
    {"Xor", "one_of", "", "!a != !b"},
};

void emit_pair(OperatorEmit& op, const Binary& binary, const CArgument& y, const CArgument& a,
               const Shape& a_shape, const CArgument& b, const Shape& b_shape, CType type,
               const Shape& result, int over) {
  const bool whole = type == CType::whole;
  const std::string function = cat(binary.function, whole ? "_whole" : "");
  const CType result_type = binary.compares ? CType::whole : type;
  const CWalk walk{result.dims(), {steps_along(a_shape, result), steps_along(b_shape, result)}};
  CCall& call = op.call_instance(
      "binary", function,
      cat("BINARY(", function, ", ", c_name(type), ", ", c_name(result_type), ", ",
          whole && binary.whole != nullptr ? binary.whole : binary.expression, ")"),
      {y, a, b}, "walk", walk.fields());
  if (over >= 0 && op.shape(over) == result && result_type == type) op.may_overwrite(call, over);
}

void emit_binary(OperatorEmit& op) {
  const Binary* binary = nullptr;
  for (const Binary& known : kBinary)
    if (op.op.type() == known.operator_name) binary = &known;
  const int count = op.op.inputs();
  const CType type = op.type(0);
  const CType result_type = binary->compares ? CType::whole : type;
  if (count == 1) return op.view(0, op.shape(0));
  if (binary->expression[0] == '\0') require(type == CType::whole, "its operands are no booleans");
  Shape so_far = op.shape(0);
  CArgument left = op.input(0);
  for (int i = 1; i < count; ++i) {
    const Shape shape = common_shape({so_far, op.shape(i)});
    const bool last = i == count - 1;
    CArgument y = last ? op.output(0, shape, result_type) : op.intermediate("part", shape, type);
    y.written = true;
    // The other operand would be read again for the next row.
    const int over = i > 1 ? -1 : op.shape(0) == shape ? 0 : op.shape(1) == shape ? 1 : -1;
    emit_pair(op, *binary, y, left, so_far, op.input(i), op.shape(i), type, shape, over);
    left = y;
    left.written = false;
    so_far = shape;
  }
}
EMIT_OPERATOR(Add, emit_binary);
EMIT_OPERATOR(Sub, emit_binary);
EMIT_OPERATOR(Mul, emit_binary);
EMIT_OPERATOR(Div, emit_binary);
EMIT_OPERATOR(Pow, emit_binary);
EMIT_OPERATOR(Max, emit_binary);
EMIT_OPERATOR(Min, emit_binary);
EMIT_OPERATOR(Sum, emit_binary);
EMIT_OPERATOR(PRelu, emit_binary);
EMIT_OPERATOR(Mod, emit_binary);
EMIT_OPERATOR(Equal, emit_binary);
EMIT_OPERATOR(Greater, emit_binary);
EMIT_OPERATOR(Less, emit_binary);
EMIT_OPERATOR(GreaterOrEqual, emit_binary);
EMIT_OPERATOR(LessOrEqual, emit_binary);
EMIT_OPERATOR(And, emit_binary);
EMIT_OPERATOR(Or, emit_binary);
EMIT_OPERATOR(Xor, emit_binary);

void emit_where(OperatorEmit& op) {
  const Shape result = common_shape({op.shape(0), op.shape(1), op.shape(2)});
  const CType type = op.type(1);
  const std::string name = type == CType::real ? "where" : "where_whole";
  const CWalk walk{result.dims(),
                   {steps_along(op.shape(1), result), steps_along(op.shape(2), result),
                    steps_along(op.shape(0), result)}};
  const CArgument y = op.output(0, result, type);
  op.call_instance("where", name, cat("WHERE(", name, ", ", c_name(type), ")"),
                   {y, op.input(0), op.input(1), op.input(2)}, "walk", walk.fields());
}
EMIT_OPERATOR(Where, emit_where);

}  // namespace
}  // namespace crema

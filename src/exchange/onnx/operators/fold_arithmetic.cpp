// Arithmetic on constants.
#include <cmath>
#include <functional>

#include "exchange/onnx/operator_import.h"
#include "exchange/onnx/operators/broadcast.h"

namespace crema {
namespace {

int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }

// "Fmod" is Mod with the attribute fmod: its result has the sign of the dividend.
int64_t folded_ints(const std::string& op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  if (op == "Add" || op == "Sum") return wrapped(x + y);
  if (op == "Sub") return wrapped(x - y);
  if (op == "Mul") return wrapped(x * y);
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "And") return (a != 0) && (b != 0);
  if (op == "Or") return (a != 0) || (b != 0);
  if (op == "Xor") return (a != 0) != (b != 0);
  if (op == "Pow") return truncated(std::pow(a, b));
  require(b != 0, "a division by zero");
  if (b == -1) return op == "Div" ? wrapped(0 - x) : 0;
  if (op == "Div") return a / b;
  const int64_t rest = a % b;
  if (op == "Fmod") return rest;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double folded_doubles(const std::string& op, double a, double b) {
  if (op == "Add" || op == "Sum") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Pow") return std::pow(a, b);
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  const double rest = std::fmod(a, b);
  return op == "Mod" && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t compared(const std::string& op, double a, double b) {
  if (op == "Equal") return a == b;
  if (op == "Greater") return a > b;
  if (op == "Less") return a < b;
  if (op == "GreaterOrEqual") return a >= b;
  return a <= b;
}

// Calls each(i, a, b) for the positions of both together.
template <typename Each>
void for_both(const OnnxTensor& a, const OnnxTensor& b, const Shape& shape, const Each& each) {
  Walk walk(shape, {broadcast_steps(a.shape, shape), broadcast_steps(b.shape, shape)});
  for (int64_t i = 0, n = shape.count(); i < n; ++i, walk.next())
    each(i, walk.offset(0), walk.offset(1));
}

OnnxTensor folded_pair(const std::string& op, const OnnxTensor& a, const OnnxTensor& b) {
  const Shape shape = broadcast_shape(a.shape, b.shape);
  check_folded(shape);
  OnnxTensor result;
  result.is_int = a.is_int && (b.is_int || op == "Pow");
  result.resize(shape);
  for_both(a, b, shape, [&](int64_t i, int64_t from_a, int64_t from_b) {
    if (result.is_int && b.is_int)
      result.ints[i] = folded_ints(op, a.ints[from_a], b.ints[from_b]);
    else if (result.is_int)
      result.ints[i] = truncated(folded_doubles(op, a.at(from_a), b.at(from_b)));
    else
      result.floats[i] = static_cast<float>(folded_doubles(op, a.at(from_a), b.at(from_b)));
  });
  return result;
}

void fold_combination(OperatorImport& op) {
  OnnxTensor result = op.constant(0, "the first operand");
  const std::string type = op.int_of("fmod", 0) != 0 ? "Fmod" : op.type();
  for (int i = 1; i < op.inputs(); ++i)
    result = folded_pair(type, result, op.constant(i, "an operand"));
  op.give(std::move(result));
}
FOLD_OPERATOR(Add, fold_combination);
FOLD_OPERATOR(Sub, fold_combination);
FOLD_OPERATOR(Mul, fold_combination);
FOLD_OPERATOR(Div, fold_combination);
FOLD_OPERATOR(Mod, fold_combination);
FOLD_OPERATOR(Pow, fold_combination);
FOLD_OPERATOR(Min, fold_combination);
FOLD_OPERATOR(Max, fold_combination);
FOLD_OPERATOR(Sum, fold_combination);
FOLD_OPERATOR(And, fold_combination);
FOLD_OPERATOR(Or, fold_combination);
FOLD_OPERATOR(Xor, fold_combination);

void fold_comparison(OperatorImport& op) {
  const OnnxTensor &a = op.constant(0, "the first operand"), &b = op.constant(1, "the second one");
  const Shape shape = broadcast_shape(a.shape, b.shape);
  check_folded(shape);
  OnnxTensor result;
  result.is_int = true;
  result.resize(shape);
  for_both(a, b, shape, [&](int64_t i, int64_t from_a, int64_t from_b) {
    if (a.is_int && b.is_int && op.type() == "Equal")
      result.ints[i] = a.ints[from_a] == b.ints[from_b];
    else
      result.ints[i] = compared(op.type(), a.at(from_a), b.at(from_b));
  });
  op.give(std::move(result));
}
FOLD_OPERATOR(Equal, fold_comparison);
FOLD_OPERATOR(Greater, fold_comparison);
FOLD_OPERATOR(Less, fold_comparison);
FOLD_OPERATOR(GreaterOrEqual, fold_comparison);
FOLD_OPERATOR(LessOrEqual, fold_comparison);

double folded_one(const std::string& op, double x) {
  if (op == "Neg") return -x;
  if (op == "Abs") return std::abs(x);
  if (op == "Sqrt") return std::sqrt(x);
  if (op == "Exp") return std::exp(x);
  if (op == "Log") return std::log(x);
  if (op == "Reciprocal") return 1 / x;
  if (op == "Floor") return std::floor(x);
  if (op == "Ceil") return std::ceil(x);
  if (op == "Round") return std::nearbyint(x);
  if (op == "Sin") return std::sin(x);
  if (op == "Cos") return std::cos(x);
  if (op == "Erf") return std::erf(x);
  if (op == "Sigmoid") return 1 / (1 + std::exp(-x));
  if (op == "Tanh") return std::tanh(x);
  if (op == "Relu") return std::max(x, 0.0);
  return x == 0;  // Not
}

void fold_function(OperatorImport& op) {
  OnnxTensor result = op.constant(0, "the operand");
  for (int64_t& value : result.ints)
    value = op.type() == "Neg" ? wrapped(0 - static_cast<uint64_t>(value))
                               : truncated(folded_one(op.type(), static_cast<double>(value)));
  for (float& value : result.floats) value = static_cast<float>(folded_one(op.type(), value));
  op.give(std::move(result));
}
FOLD_OPERATOR(Neg, fold_function);
FOLD_OPERATOR(Abs, fold_function);
FOLD_OPERATOR(Sqrt, fold_function);
FOLD_OPERATOR(Exp, fold_function);
FOLD_OPERATOR(Log, fold_function);
FOLD_OPERATOR(Reciprocal, fold_function);
FOLD_OPERATOR(Floor, fold_function);
FOLD_OPERATOR(Ceil, fold_function);
FOLD_OPERATOR(Round, fold_function);
FOLD_OPERATOR(Sin, fold_function);
FOLD_OPERATOR(Cos, fold_function);
FOLD_OPERATOR(Erf, fold_function);
FOLD_OPERATOR(Sigmoid, fold_function);
FOLD_OPERATOR(Tanh, fold_function);
FOLD_OPERATOR(Relu, fold_function);
FOLD_OPERATOR(Not, fold_function);

bool is_float_number(int64_t type) {
  return type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::DOUBLE ||
         type == onnx::TensorProto::FLOAT16 || type == onnx::TensorProto::BFLOAT16;
}

OnnxTensor cast_to(const OnnxTensor& from, bool to_int, bool to_bool) {
  OnnxTensor result;
  result.shape = from.shape;
  result.is_int = to_int;
  if (!to_int) {
    result.floats = from.as_floats();
    return result;
  }
  result.ints = from.as_ints();
  if (!to_bool) return result;
  for (int64_t i = 0; i < from.count(); ++i) result.ints[i] = from.at(i) != 0;
  return result;
}

void fold_cast(OperatorImport& op) {
  const int64_t to = op.int_of("to", onnx::TensorProto::FLOAT);
  require(to != onnx::TensorProto::STRING, "no layer has texts");
  op.give(
      cast_to(op.constant(0, "the operand"), !is_float_number(to), to == onnx::TensorProto::BOOL));
}
void fold_cast_like(OperatorImport& op) {
  op.give(cast_to(op.constant(0, "the operand"), op.constant(1, "the type").is_int, false));
}
FOLD_OPERATOR(Cast, fold_cast);
FOLD_OPERATOR(CastLike, fold_cast_like);

void fold_where(OperatorImport& op) {
  const OnnxTensor &chosen = op.constant(0, "the condition"), &a = op.constant(1, "the first one"),
                   &b = op.constant(2, "the second one");
  const Shape shape = broadcast_shape(chosen.shape, broadcast_shape(a.shape, b.shape));
  check_folded(shape);
  OnnxTensor result;
  result.is_int = a.is_int && b.is_int;
  result.resize(shape);
  Walk walk(shape, {broadcast_steps(chosen.shape, shape), broadcast_steps(a.shape, shape),
                    broadcast_steps(b.shape, shape)});
  for (int64_t i = 0, n = shape.count(); i < n; ++i, walk.next()) {
    const bool first = chosen.at(walk.offset(0)) != 0;
    const OnnxTensor& from = first ? a : b;
    const int64_t at = walk.offset(first ? 1 : 2);
    if (result.is_int)
      result.ints[i] = from.ints[at];
    else
      result.floats[i] = static_cast<float>(from.at(at));
  }
  op.give(std::move(result));
}
FOLD_OPERATOR(Where, fold_where);

}  // namespace
}  // namespace crema

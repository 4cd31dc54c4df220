// Functions of one value.
#include <limits>

#include "exchange/c/operators/walk.h"

namespace crema {
namespace {

struct Unary {
  const char *operator_name, *function, *expression;
  // Attributes that are p and q in the expression.
  const char *p = nullptr, *q = nullptr;
  float p_default = 0, q_default = 0;
};

constexpr Unary kUnary[] = {
    {"Relu", "relu", "x > 0 ? x : 0"},
    {"Sigmoid", "sigmoid", "1 / (1 + expf(-x))"},
    {"Tanh", "hyperbolic_tangent", "tanhf(x)"},
    {"Exp", "exponential", "expf(x)"},
    {"Log", "logarithm", "logf(x)"},
    {"Sqrt", "square_root", "sqrtf(x)"},
    {"Abs", "absolute", "fabsf(x)"},
    {"Neg", "negative", "-x"},
    {"Erf", "error_function", "erff(x)"},
    {"Floor", "rounded_down", "floorf(x)"},
    {"Ceil", "rounded_up", "ceilf(x)"},
    {"Round", "rounded", "rintf(x)"},
    {"Sin", "sine", "sinf(x)"},
    {"Cos", "cosine", "cosf(x)"},
    {"Sign", "sign", "(x > 0) - (x < 0)"},
    {"Reciprocal", "reciprocal", "1 / x"},
    {"Softplus", "softplus", "(x > 0 ? x : 0) + log1pf(expf(-fabsf(x)))"},
    {"Softsign", "softsign", "x / (1 + fabsf(x))"},
    {"HardSwish", "hard_swish", "x * (x <= -3 ? 0 : x >= 3 ? 1 : x / 6 + 0.5f)"},
    {"Mish", "mish", "x * tanhf((x > 0 ? x : 0) + log1pf(expf(-fabsf(x))))"},
    {"LeakyRelu", "leaky_relu", "x < 0 ? x * p : x", "alpha", nullptr, 0.01f},
    {"ThresholdedRelu", "thresholded_relu", "x > p ? x : 0", "alpha", nullptr, 1},
    {"Elu", "elu", "x < 0 ? p * expm1f(x) : x", "alpha", nullptr, 1},
    {"Selu", "selu", "q * (x < 0 ? p * expm1f(x) : x)", "alpha", "gamma", 1.67326319f, 1.05070102f},
    {"HardSigmoid", "hard_sigmoid", "fminf(fmaxf(p * x + q, 0), 1)", "alpha", "beta", 0.2f, 0.5f},
};

void emit_of(OperatorEmit& op, const std::string& function, const std::string& expression, float p,
             float q) {
  const Shape& x = op.shape();
  const CArgument y = op.output(0, x);
  CCall& call =
      op.call_instance("unary", function, cat("UNARY_OF(", function, ", ", expression, ")"),
                       {y, op.input(0), op.number(x.count()), op.number(p), op.number(q)});
  op.may_overwrite(call, 0);
}

void emit_plain(OperatorEmit& op, const std::string& function, const std::string& expression,
                CType from, CType to) {
  const Shape& x = op.shape();
  const CArgument y = op.output(0, x, to);
  CCall& call = op.call_instance(
      "unary", function,
      cat("UNARY(", function, ", ", c_name(from), ", ", c_name(to), ", ", expression, ")"),
      {y, op.input(0), op.number(x.count())});
  if (from == to) op.may_overwrite(call, 0);
}

void emit_unary(OperatorEmit& op) {
  for (const Unary& known : kUnary) {
    if (op.op.type() != known.operator_name) continue;
    if (op.op.type() == "Relu" && op.type() == CType::int8)
      return emit_plain(op, "relu_int8", known.expression, CType::int8, CType::int8);
    require(op.type() == CType::real || op.op.type() == "Neg" || op.op.type() == "Abs",
            "its operand is an integer");
    if (op.type() == CType::whole) {
      return emit_plain(op, cat(known.function, "_whole"),
                        op.op.type() == "Neg" ? "-x" : "x < 0 ? -x : x", CType::whole,
                        CType::whole);
    }
    if (known.p == nullptr)
      return emit_plain(op, known.function, known.expression, CType::real, CType::real);
    return emit_of(op, known.function, known.expression, op.op.float_of(known.p, known.p_default),
                   known.q == nullptr ? 0 : op.op.float_of(known.q, known.q_default));
  }
}
EMIT_OPERATOR(Relu, emit_unary);
EMIT_OPERATOR(Sigmoid, emit_unary);
EMIT_OPERATOR(Tanh, emit_unary);
EMIT_OPERATOR(Exp, emit_unary);
EMIT_OPERATOR(Log, emit_unary);
EMIT_OPERATOR(Sqrt, emit_unary);
EMIT_OPERATOR(Abs, emit_unary);
EMIT_OPERATOR(Neg, emit_unary);
EMIT_OPERATOR(Erf, emit_unary);
EMIT_OPERATOR(Floor, emit_unary);
EMIT_OPERATOR(Ceil, emit_unary);
EMIT_OPERATOR(Round, emit_unary);
EMIT_OPERATOR(Sin, emit_unary);
EMIT_OPERATOR(Cos, emit_unary);
EMIT_OPERATOR(Sign, emit_unary);
EMIT_OPERATOR(Reciprocal, emit_unary);
EMIT_OPERATOR(Softplus, emit_unary);
EMIT_OPERATOR(Softsign, emit_unary);
EMIT_OPERATOR(HardSwish, emit_unary);
EMIT_OPERATOR(Mish, emit_unary);
EMIT_OPERATOR(LeakyRelu, emit_unary);
EMIT_OPERATOR(ThresholdedRelu, emit_unary);
EMIT_OPERATOR(Elu, emit_unary);
EMIT_OPERATOR(Selu, emit_unary);
EMIT_OPERATOR(HardSigmoid, emit_unary);

void emit_clip(OperatorEmit& op) {
  constexpr float kNone = std::numeric_limits<float>::infinity();
  require(op.type() == CType::real, "its operand is an integer");
  emit_of(op, "clip", "x < p ? p : x > q ? q : x",
          op.op.has(1) ? op.op.number(1, "the lower bound") : -kNone,
          op.op.has(2) ? op.op.number(2, "the upper bound") : kNone);
}
EMIT_OPERATOR(Clip, emit_clip);

void emit_gelu(OperatorEmit& op) {
  if (op.op.string_of("approximate", "none") == "tanh") {
    return emit_plain(op, "gelu_tanh",
                      "0.5f * x * (1 + tanhf(0.797884561f * (x + 0.044715f * x * x * x)))",
                      CType::real, CType::real);
  }
  emit_plain(op, "gelu", "0.5f * x * (1 + erff(x * 0.707106781f))", CType::real, CType::real);
}
EMIT_OPERATOR(Gelu, emit_gelu);

void emit_not(OperatorEmit& op) { emit_plain(op, "not", "!x", CType::whole, CType::whole); }
EMIT_OPERATOR(Not, emit_not);

void emit_is_nan(OperatorEmit& op) {
  emit_plain(op, "is_nan", "x != x", CType::real, CType::whole);
}
EMIT_OPERATOR(IsNaN, emit_is_nan);

void emit_cast(OperatorEmit& op) {
  const int64_t to = op.op.int_of("to", 0);
  const CType from = op.type();
  const bool real = to == onnx::TensorProto::FLOAT || to == onnx::TensorProto::DOUBLE;
  const bool boolean = to == onnx::TensorProto::BOOL;
  if (from == (real ? CType::real : CType::whole) && !boolean) return op.view(0, op.shape());
  if (boolean) {
    return emit_plain(op, from == CType::real ? "is_true" : "is_true_whole", "x != 0", from,
                      CType::whole);
  }
  emit_plain(op, real ? "to_float" : "to_whole", "x", from, real ? CType::real : CType::whole);
}
EMIT_OPERATOR(Cast, emit_cast);

}  // namespace
}  // namespace crema

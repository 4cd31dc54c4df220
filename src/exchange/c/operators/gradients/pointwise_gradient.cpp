// Gradients of operators that compute each element by itself, from their results if they can.
#include "exchange/c/gradient_emit.h"

namespace crema {
namespace {

void emit_pointwise(GradientEmit& op, const std::string& function, const std::string& expression,
                    const CArgument& from, float p = 0) {
  const CArgument dy = op.dy();
  CCall& call = op.call_instance(
      "pointwise_gradient", function, cat("POINTWISE_GRADIENT(", function, ", ", expression, ")"),
      {op.gradient(0), dy, from, op.number(op.shape().count()), op.number(p)});
  if (dy.shift == 0) call.over = dy.index;
}

void emit_relu(GradientEmit& op) {
  emit_pointwise(op, "relu_gradient", "y > 0 ? dy : 0", op.result());
}
EMIT_GRADIENT(Relu, emit_relu);

void emit_leaky_relu(GradientEmit& op) {
  const float slope = op.op.float_of("alpha", 0.01f);
  require(slope > 0,
          "its gradient follows from its result only where the slope below zero is "
          "positive, but that is ",
          slope);
  emit_pointwise(op, "leaky_relu_gradient", "y > 0 ? dy : dy * p", op.result(), slope);
}
EMIT_GRADIENT(LeakyRelu, emit_leaky_relu);

void emit_elu(GradientEmit& op) {
  emit_pointwise(op, "elu_gradient", "y > 0 ? dy : dy * (y + p)", op.result(),
                 op.op.float_of("alpha", 1));
}
EMIT_GRADIENT(Elu, emit_elu);

void emit_sigmoid(GradientEmit& op) {
  emit_pointwise(op, "sigmoid_gradient", "dy * y * (1 - y)", op.result());
}
EMIT_GRADIENT(Sigmoid, emit_sigmoid);

void emit_tanh(GradientEmit& op) {
  emit_pointwise(op, "tanh_gradient", "dy * (1 - y * y)", op.result());
}
EMIT_GRADIENT(Tanh, emit_tanh);

void emit_clip(GradientEmit& op) {
  // One function for each pair of bounds.
  const auto bound = [&](int i) {
    return op.op.has(i) ? op.op.number(i, "a bound") : std::numeric_limits<float>::infinity();
  };
  const bool above = op.op.has(1);
  std::string inside;
  if (op.op.has(1)) inside = cat("y > ", c_float(bound(1)));
  if (op.op.has(2)) inside += cat(above ? " && " : "", "y < ", c_float(bound(2)));
  std::string function = "clip_gradient";
  for (const char c : inside) function += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  emit_pointwise(op, function, cat(inside, " ? dy : 0"), op.result());
}
EMIT_GRADIENT(Clip, emit_clip);

void emit_hard_sigmoid(GradientEmit& op) {
  emit_pointwise(op, "hard_sigmoid_gradient", "y > 0 && y < 1 ? dy * p : 0", op.result(),
                 op.op.float_of("alpha", 0.2f));
}
EMIT_GRADIENT(HardSigmoid, emit_hard_sigmoid);

// From its input.
void emit_hard_swish(GradientEmit& op) {
  emit_pointwise(op, "hard_swish_gradient",
                 "y <= -3 ? 0 : y >= 3 ? dy : dy * (2 * y + 3) * (1.f / 6)", op.input(0));
}
EMIT_GRADIENT(HardSwish, emit_hard_swish);

}  // namespace
}  // namespace crema

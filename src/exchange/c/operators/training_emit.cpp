// Operators that only training has: losses, which also compute the gradient of what they judge, and
// dropout.
#include "exchange/c/gradient_emit.h"

namespace crema {
namespace {

CFields loss_fields(const OperatorEmit& op) {
  CFields fields;
  fields.text("weight", c_float(op.op.float_of("weight", 1)));
  fields.text("divisor", c_float(op.op.float_of("divisor", 1)));
  fields.add("ignores", int64_t{op.op.has_attribute("ignore_label")});
  fields.add("ignored", op.op.int_of("ignore_label", 0));
  return fields;
}

void emit_loss(OperatorEmit& op, const char* function, const std::vector<CArgument>& counts) {
  CArgument gradient = op.intermediate("gradient", op.shape());
  op.give_loss_gradient(0, gradient);
  gradient.written = true;
  std::vector<CArgument> arguments = {gradient, op.input(0), op.input(1)};
  arguments.insert(arguments.end(), counts.begin(), counts.end());
  op.call(function, arguments, "loss_shape", loss_fields(op)).adds_loss = true;
}

void emit_softmax_loss(OperatorEmit& op) {
  const Shape& x = op.shape();
  const int axis = op.op.axis_in(op.op.int_of("axis", 1), x.axes());
  emit_loss(op, "softmax_loss",
            {op.number(x.count(0, axis)), op.number(x[axis]), op.number(x.count(axis + 1))});
}
EMIT_OPERATOR(SoftmaxLoss, emit_softmax_loss);

void emit_sigmoid_loss(OperatorEmit& op) {
  emit_loss(op, "sigmoid_loss", {op.number(op.shape().count())});
}
EMIT_OPERATOR(SigmoidLoss, emit_sigmoid_loss);

void emit_euclidean_loss(OperatorEmit& op) {
  emit_loss(op, "euclidean_loss", {op.number(op.shape().count())});
}
EMIT_OPERATOR(EuclideanLoss, emit_euclidean_loss);

CFields dropout_fields(const OperatorEmit& op) {
  const std::vector<int64_t> layout = op.op.ints_of("layout");
  CFields fields;
  fields.text("seed", cat(op.seed(), "ULL"));
  fields.text("layer", cat(static_cast<uint64_t>(op.op.int_of("layer", 0)), "ULL"));
  fields.add("images", layout[0]).add("channels", layout[1]).add("positions", layout[2]);
  fields.text("threshold", cat(op.op.int_of("threshold", 0), "u"));
  fields.text("factor", c_float(op.op.float_of("factor", 1)));
  return fields;
}

void emit_dropout(OperatorEmit& op) {
  const CArgument y = op.output(0, op.shape());
  CCall& call =
      op.call("dropout", {y, op.input(0), op.text("iteration")}, "dropout", dropout_fields(op));
  op.may_overwrite(call, 0);
}
EMIT_OPERATOR(DropoutMask, emit_dropout);

void emit_dropout_gradient(GradientEmit& op) {
  const CArgument dy = op.dy();
  CCall& call =
      op.call("dropout", {op.gradient(0), dy, op.text("iteration")}, "dropout", dropout_fields(op));
  if (dy.shift == 0) call.over = dy.index;
}
EMIT_GRADIENT(DropoutMask, emit_dropout_gradient);

}  // namespace
}  // namespace crema

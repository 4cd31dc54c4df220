// Normalizations that only training has, with their gradients: their statistics are those of the batch, or
// parameters that training changes.
#include "exchange/c/gradient_emit.h"

namespace crema {
namespace {

CFields channel_fields(const OperatorEmit& op) {
  const Shape& x = op.shape();
  const int64_t channels = op.shape(1).count();
  CFields fields;
  fields.add("samples", x[0]).add("channels", channels).add("positions", x.count(1) / channels);
  fields.text("epsilon", c_float(op.op.float_of("epsilon", 0)));
  return fields;
}

CFields batch_norm_fields(const OperatorEmit& op) {
  return channel_fields(op).text("fraction", c_float(op.op.float_of("fraction", 0)));
}

void emit_batch_norm(OperatorEmit& op) {
  const CArgument y = op.output(0, op.shape());
  CArgument inverses = op.output(1, op.shape(1));
  inverses.written = false;  // the call's result is y
  CCall& call =
      op.call("batch_norm", {y, op.input(0), op.input(1), op.input(2), op.input(3), inverses},
              "batch_norm", batch_norm_fields(op));
  op.may_overwrite(call, 0);
}
EMIT_OPERATOR(BatchNorm, emit_batch_norm);

void emit_batch_norm_gradient(GradientEmit& op) {
  const CArgument dy = op.dy();
  CCall& call = op.call("batch_norm_gradient", {op.gradient(0), dy, op.result(0), op.result(1)},
                        "batch_norm", batch_norm_fields(op));
  if (dy.shift == 0) call.over = dy.index;
}
EMIT_GRADIENT(BatchNorm, emit_batch_norm_gradient);

void emit_stored_batch_norm(OperatorEmit& op) {
  const CArgument y = op.output(0, op.shape());
  CCall& call =
      op.call("stored_batch_norm", {y, op.input(0), op.input(1), op.input(2), op.input(3)},
              "stored_batch_norm", channel_fields(op));
  op.may_overwrite(call, 0);
}
EMIT_OPERATOR(StoredBatchNorm, emit_stored_batch_norm);

void emit_stored_batch_norm_gradient(GradientEmit& op) {
  const CArgument dy = op.dy();
  CCall& call =
      op.call("stored_batch_norm", {op.gradient(0), dy, op.text("NULL"), op.input(2), op.input(3)},
              "stored_batch_norm", channel_fields(op));
  if (dy.shift == 0) call.over = dy.index;
}
EMIT_GRADIENT(StoredBatchNorm, emit_stored_batch_norm_gradient);

}  // namespace
}  // namespace crema

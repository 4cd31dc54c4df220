// Normalizations and softmax.
#include "exchange/c/operators/norm_emit.h"

namespace crema {

CFields lrn_fields(const OperatorEmit& op) {
  const Shape& x = op.shape();
  const int64_t size = op.op.int_of("size", 1);
  const auto real = [&](const char* name, float otherwise) {
    return c_float(op.op.float_of(name, otherwise));
  };
  CFields fields;
  fields.add("samples", x[0]).add("channels", x[1]).add("positions", x.count(2)).add("size", size);
  fields.text("alpha", c_float(op.op.float_of("alpha", 1e-4f) / static_cast<float>(size)));
  fields.text("beta", real("beta", 0.75f)).text("bias", real("bias", 1));
  return fields;
}

CFields lrn_within_fields(const OperatorEmit& op) {
  const Shape& x = op.shape();
  const int64_t size = op.op.int_of("size", 1);
  CFields fields;
  fields.add("planes", x.count(0, 2)).add("height", x[2]).add("width", x[3]).add("size", size);
  fields.text("alpha", c_float(op.op.float_of("alpha", 1) / static_cast<float>(size * size)));
  fields.text("beta", c_float(op.op.float_of("beta", 0.75f)));
  return fields;
}

int64_t lrn_row(const OperatorEmit& op) { return op.shape()[3] + op.op.int_of("size", 1) - 1; }

CFields mvn_fields(const OperatorEmit& op) {
  const Shape& x = op.shape();
  const int64_t rows = x.count(0, static_cast<int>(op.op.int_of("axis", 1)));
  CFields fields;
  fields.add("rows", rows).add("count", x.count() / rows);
  fields.add("divides", op.op.int_of("divides", 1));
  return fields.text("epsilon", c_float(op.op.float_of("epsilon", 0)));
}

namespace {

void emit_softmax(OperatorEmit& op) {
  const Shape& x = op.shape();
  const int axis = op.op.axis_in(op.op.int_of("axis", -1), x.axes());
  const CArgument y = op.output(0, x);
  CCall& call = op.call(
      "softmax", {y, op.input(0), op.number(x.count(0, axis)), op.number(x[axis]),
                  op.number(x.count(axis + 1)), op.number(int64_t{op.op.type() == "LogSoftmax"})});
  op.may_overwrite(call, 0);
}
EMIT_OPERATOR(Softmax, emit_softmax);
EMIT_OPERATOR(LogSoftmax, emit_softmax);

void emit_lrn(OperatorEmit& op) {
  const CArgument y = op.output(0, op.shape());
  op.call("lrn", {y, op.input(0)}, "lrn", lrn_fields(op));
}
EMIT_OPERATOR(LRN, emit_lrn);

void emit_lrn_within(OperatorEmit& op) {
  const CArgument y = op.output(0, op.shape());
  op.call("lrn_within", {y, op.input(0), op.scratch(lrn_row(op))}, "lrn_within",
          lrn_within_fields(op));
}
EMIT_OPERATOR(LrnWithin, emit_lrn_within);

void emit_rows(OperatorEmit& op, int64_t rows, int64_t period) {
  const Shape& x = op.shape();
  CFields fields;
  fields.add("rows", rows).add("count", x.count() / rows).add("by_row", int64_t{period > 0});
  fields.add("period", period > 0 ? period : 1);
  fields.text("epsilon", c_float(op.op.float_of("epsilon", 1e-5f)));
  const CArgument y = op.output(0, x);
  op.call("normalize", {y, op.input(0), op.input(1), op.input(2)}, "normalize", fields);
}

void emit_layer_norm(OperatorEmit& op) {
  const Shape& x = op.shape();
  const int axis = op.op.axis_in(op.op.int_of("axis", -1), x.axes());
  require(!op.wanted(1) && !op.wanted(2), "its further results are not written by Crema");
  require(op.shape(1).count() == x.count(axis), "its factors are not those of a row");
  emit_rows(op, x.count(0, axis), 0);
}
EMIT_OPERATOR(LayerNormalization, emit_layer_norm);

void emit_instance_norm(OperatorEmit& op) {
  const Shape& x = op.shape();
  emit_rows(op, x[0] * x[1], x[1]);
}
EMIT_OPERATOR(InstanceNormalization, emit_instance_norm);

// The second result is for the gradient.
void emit_mvn(OperatorEmit& op) {
  const bool keeps = op.op.outputs() > 1;
  const CArgument y = op.output(0, op.shape());
  CArgument inverses = op.text("NULL");
  if (keeps)
    inverses = op.output(1, {op.shape().count(0, static_cast<int>(op.op.int_of("axis", 1)))});
  inverses.written = false;  // the call's result is y
  CCall& call = op.call("mvn", {y, op.input(0), inverses}, "mvn", mvn_fields(op));
  op.may_overwrite(call, 0);
}
EMIT_OPERATOR(Mvn, emit_mvn);

}  // namespace
}  // namespace crema

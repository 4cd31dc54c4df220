// Poolings.
#include "exchange/c/operators/walk.h"
#include "exchange/c/operators/window_emit.h"

namespace crema {
namespace {

void emit_max_pool(OperatorEmit& op) {
  const Shape& x = op.shape();
  const CWindow window = read_window(op, x, op.op.ints_of("kernel_shape"));
  const Shape shape = image_shape(x, x[1], window.out);
  const CFields fields = window.fields();
  const CArgument planes = op.number(x[0] * x[1]);
  const CType type = op.type();
  const CArgument y = op.output(0, shape, type);
  if (op.wanted(1)) {
    const CArgument positions = op.output(1, shape, CType::whole);
    op.call("max_pool_positions", {y, positions, op.input(0), planes}, "window", fields);
    return;
  }
  const char* const lowest = type == CType::real ? "-INFINITY" : type == CType::int8 ? "-128" : "0";
  const std::string name = name_for("max_pool", type);
  op.call_instance("max_pool", name, cat("MAX_POOL(", name, ", ", c_name(type), ", ", lowest, ")"),
                   {y, op.input(0), planes}, "window", fields);
}
EMIT_OPERATOR(MaxPool, emit_max_pool);

void emit_average_pool(OperatorEmit& op) {
  const Shape& x = op.shape();
  const CWindow window = read_window(op, x, op.op.ints_of("kernel_shape"));
  const CFields fields = window.fields();
  const CArgument y = op.output(0, image_shape(x, x[1], window.out));
  op.call("average_pool",
          {y, op.input(0), op.number(x[0] * x[1]), op.number(op.op.int_of("count_include_pad", 0))},
          "window", fields);
}
EMIT_OPERATOR(AveragePool, emit_average_pool);

}  // namespace
}  // namespace crema

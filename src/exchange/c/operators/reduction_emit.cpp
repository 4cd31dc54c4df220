// Operators that join the elements along axes.
#include "exchange/c/operators/walk.h"

namespace crema {
namespace {

struct Reduction {
  const char *operator_name, *function, *start, *map, *join, *finish;
};

constexpr Reduction kReductions[] = {
    {"ReduceSum", "sum", "0", "x", "v + w", "v"},
    {"ReduceMean", "mean", "0", "x", "v + w", "v / n"},
    {"ReduceMax", "largest", "-INFINITY", "x", "w > v ? w : v", "v"},
    {"ReduceMin", "smallest", "INFINITY", "x", "w < v ? w : v", "v"},
    {"ReduceProd", "product", "1", "x", "v * w", "v"},
    {"ReduceL1", "sum_of_absolutes", "0", "fabsf(x)", "v + w", "v"},
    {"ReduceL2", "length", "0", "x * x", "v + w", "sqrtf(v)"},
    {"ReduceSumSquare", "sum_of_squares", "0", "x * x", "v + w", "v"},
};

void emit_reduction_over(OperatorEmit& op, const std::string& type,
                         const std::vector<int64_t>& axes, bool keep) {
  const Shape& x = op.shape();
  std::vector<bool> vanishes(x.axes(), axes.empty());
  for (const int64_t axis : axes) vanishes[op.op.axis_in(axis, x.axes())] = true;
  std::vector<int64_t> kept, full;
  for (int axis = 0; axis < x.axes(); ++axis) {
    full.push_back(vanishes[axis] ? 1 : x[axis]);
    if (keep || !vanishes[axis]) kept.push_back(full.back());
  }
  std::vector<int64_t> steps = contiguous_steps(Shape(full));
  for (int axis = 0; axis < x.axes(); ++axis)
    if (vanishes[axis]) steps[axis] = 0;
  require(op.type() == CType::real, "its operand is an integer");
  for (const Reduction& known : kReductions) {
    if (type != known.operator_name) continue;
    const Shape shape(kept);
    const CArgument y = op.output(0, shape);
    op.call_instance("reduce", known.function,
                     cat("REDUCE(", known.function, ", ", known.start, ", ", known.map, ", ",
                         known.join, ", ", known.finish, ")"),
                     {y, op.input(0), op.number(shape.count()),
                      op.number(static_cast<float>(x.count() / shape.count()))},
                     "walk", CWalk{x.dims(), {contiguous_steps(x), steps}}.fields());
    return;
  }
}

void emit_reduction(OperatorEmit& op) {
  const int since = op.op.type() == "ReduceSum" ? 13 : 18;
  emit_reduction_over(op, op.op.type(), op.op.ints_or_input("axes", 1, since),
                      op.op.int_of("keepdims", 1) != 0);
}
EMIT_OPERATOR(ReduceSum, emit_reduction);
EMIT_OPERATOR(ReduceMean, emit_reduction);
EMIT_OPERATOR(ReduceMax, emit_reduction);
EMIT_OPERATOR(ReduceMin, emit_reduction);
EMIT_OPERATOR(ReduceProd, emit_reduction);
EMIT_OPERATOR(ReduceL1, emit_reduction);
EMIT_OPERATOR(ReduceL2, emit_reduction);
EMIT_OPERATOR(ReduceSumSquare, emit_reduction);

void emit_global_pool(OperatorEmit& op) {
  std::vector<int64_t> axes;
  for (int axis = 2; axis < op.shape().axes(); ++axis) axes.push_back(axis);
  emit_reduction_over(op, op.op.type() == "GlobalMaxPool" ? "ReduceMax" : "ReduceMean", axes, true);
}
EMIT_OPERATOR(GlobalAveragePool, emit_global_pool);
EMIT_OPERATOR(GlobalMaxPool, emit_global_pool);

// An axis with what is in front and behind.
struct Along {
  int axis;
  CArgument outer, count, inner;

  Along(const OperatorEmit& op, int64_t axis_number)
      : axis(OperatorImport::axis_in(axis_number, op.shape().axes())),
        outer(OperatorEmit::number(op.shape().count(0, axis))),
        count(OperatorEmit::number(op.shape()[axis])),
        inner(OperatorEmit::number(op.shape().count(axis + 1))) {}
};

void emit_top_k(OperatorEmit& op) {
  const int64_t k = op.op.ints(1, "the number of values")[0];
  const Along along(op, op.op.int_of("axis", -1));
  Shape shape = op.shape();
  shape[along.axis] = k;
  const CArgument y = op.output(0, shape), indices = op.output(1, shape, CType::whole);
  op.call("top_k", {y, indices, op.input(0), along.outer, along.count, along.inner, op.number(k),
                    op.number(op.op.int_of("largest", 1))});
}
EMIT_OPERATOR(TopK, emit_top_k);

void emit_arg_max(OperatorEmit& op) {
  const Along along(op, op.op.int_of("axis", 0));
  std::vector<int64_t> extents = op.shape().dims();
  if (op.op.int_of("keepdims", 1) != 0) {
    extents[along.axis] = 1;
  } else {
    extents.erase(extents.begin() + along.axis);
  }
  const CArgument y = op.output(0, Shape(extents), CType::whole);
  op.call("arg_max", {y, op.input(0), along.outer, along.count, along.inner,
                      op.number(op.op.int_of("select_last_index", 0))});
}
EMIT_OPERATOR(ArgMax, emit_arg_max);

void emit_cumulate(OperatorEmit& op) {
  require(op.op.int_of("exclusive", 0) == 0 && op.op.int_of("reverse", 0) == 0,
          "exclusive and reverse are not written by Crema");
  const Along along(op, op.op.ints(1, "the axis")[0]);
  const CArgument y = op.output(0, op.shape());
  op.call("cumulate", {y, op.input(0), along.outer, along.count, along.inner});
}
EMIT_OPERATOR(CumSum, emit_cumulate);

}  // namespace
}  // namespace crema

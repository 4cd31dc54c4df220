// Products of matrices, and LSTM.
#include "exchange/c/operators/walk.h"

namespace crema {
namespace {

std::vector<float> turned(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> result(values.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      result[column * rows + row] = values[row * columns + column];
  return result;
}

// The matrix of input i as `rows` x `columns`, which is stored the other way round if `is_turned`.
CArgument matrix(OperatorEmit& op, int i, bool is_turned, int64_t rows, int64_t columns) {
  if (!is_turned) return op.input(i);
  if (op.op.is_constant(i))
    return op.packed(i, "_turned", turned(op.op.constant(i, "a matrix").floats, columns, rows));
  CArgument to = op.intermediate("turned", {rows, columns});
  to.written = true;
  copy_elements(op, to, op.input(i), CType::real, {{rows, columns}, {{1, rows}, {columns, 1}}});
  to.written = false;
  return to;
}

CFields product_fields(int64_t rows, int64_t inner, int64_t columns) {
  CFields fields;
  fields.add("batch", {1, 1}).add("rows", rows).add("inner", inner).add("columns", columns);
  return fields;
}

// Reads the rows of weights as they are: training changes them, or reads them for gradients.
void emit_rows(OperatorEmit& op, int64_t rows, int64_t inner, int64_t columns) {
  CFields fields;
  fields.add("rows", rows).add("inner", inner).add("columns", columns);
  fields.text("activation", op.activation().text());
  const CArgument y = op.output(0, {rows, columns});
  op.call("inner_product", {y, op.input(0), op.input(1), op.input(2)}, "inner_product", fields);
}

void emit_gemm(OperatorEmit& op) {
  const bool turn_a = op.op.int_of("transA", 0) != 0, turn_b = op.op.int_of("transB", 0) != 0;
  require(op.op.float_of("alpha", 1) == 1 && op.op.float_of("beta", 1) == 1,
          "alpha and beta are not written by Crema");
  const Shape &a = op.shape(0), &b = op.shape(1);
  const int64_t rows = a[turn_a ? 1 : 0], inner = a[turn_a ? 0 : 1], columns = b[turn_b ? 0 : 1];
  require(!op.op.has(2) || op.shape(2).count() == columns, "its third operand is no row");
  op.count_products(rows * inner * columns);
  if (op.trains() && turn_b && !turn_a) return emit_rows(op, rows, inner, columns);
  const CArgument x = matrix(op, 0, turn_a, rows, inner), w = matrix(op, 1, turn_b, inner, columns);
  CFields fields = product_fields(rows, inner, columns);
  fields.text("activation", op.activation().text());
  const CArgument y = op.output(0, {rows, columns});
  op.call("matmul", {y, x, w, op.input(2)}, "matmul", fields);
}
EMIT_OPERATOR(Gemm, emit_gemm);

void emit_matmul(OperatorEmit& op) {
  Shape a = op.shape(0), b = op.shape(1);
  const bool vector_a = a.axes() == 1, vector_b = b.axes() == 1;
  if (vector_a) a = Shape{1, a[0]};
  if (vector_b) b = Shape{b[0], 1};
  const auto in_front = [](const Shape& shape) {
    return Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
  };
  int64_t rows = a[a.axes() - 2];
  const int64_t inner = a[a.axes() - 1], columns = b[b.axes() - 1];
  const Shape front = common_shape({in_front(a), in_front(b)});
  std::vector<int64_t> result = front.dims();
  if (!vector_a) result.push_back(rows);
  if (!vector_b) result.push_back(columns);
  op.count_products(front.count() * rows * inner * columns);
  // Steps in matrices along the axes in front, joined where both operands go through them in one step.
  const auto steps_of = [&](const Shape& shape, int64_t size) {
    std::vector<int64_t> steps = steps_along(in_front(shape), front);
    for (int64_t& step : steps) step *= size;
    return steps;
  };
  std::vector<int64_t> batch, x_steps, w_steps;
  const std::vector<int64_t> x_all = steps_of(a, rows * inner),
                             w_all = steps_of(b, inner * columns);
  for (int axis = 0; axis < front.axes(); ++axis) {
    if (front[axis] == 1) continue;
    if (!batch.empty() && x_steps.back() == x_all[axis] * front[axis] &&
        w_steps.back() == w_all[axis] * front[axis]) {
      batch.back() *= front[axis];
      x_steps.back() = x_all[axis];
      w_steps.back() = w_all[axis];
      continue;
    }
    batch.push_back(front[axis]);
    x_steps.push_back(x_all[axis]);
    w_steps.push_back(w_all[axis]);
  }
  require(batch.size() <= 2, "its operands repeat along ", batch.size(),
          " axes, and C functions have two at most");
  if (batch.size() == 1 && w_steps[0] == 0 && x_steps[0] == rows * inner) {  // all are rows
    rows *= batch[0];
    batch.clear();
    x_steps.clear();
    w_steps.clear();
  }
  for (std::vector<int64_t>* list : {&batch, &x_steps, &w_steps})
    list->insert(list->begin(), 2 - list->size(), list == &batch ? 1 : 0);
  CFields fields;
  fields.add("batch", batch).add("x", x_steps).add("w", w_steps);
  fields.add("rows", rows).add("inner", inner).add("columns", columns);
  fields.text("activation", op.activation().text());
  const CArgument y = op.output(0, Shape(result));
  op.call("matmul", {y, op.input(0), op.input(1), op.text("NULL")}, "matmul", fields);
}
EMIT_OPERATOR(MatMul, emit_matmul);

void emit_lstm(OperatorEmit& op) {
  require(!op.op.has(4) && !op.op.has(5) && !op.op.has(6) && !op.op.has(7) && !op.wanted(1) &&
              !op.wanted(2) && op.op.string_of("direction", "forward") == "forward" && op.op.has(3),
          "it has inputs or results that Crema does not write");
  const Shape& x = op.shape();
  const int64_t steps = x[0], sequences = x[1], inputs = x[2],
                hidden = op.op.int_of("hidden_size", 0);
  std::vector<float> bias = op.op.constant(3, "the bias").floats;
  for (int64_t i = 0; i < 4 * hidden; ++i) bias[i] += bias[4 * hidden + i];
  bias.resize(4 * hidden);
  op.count_products(steps * sequences * 4 * hidden * (inputs + hidden));
  CArgument sums = op.intermediate("sums", {steps, sequences, 4 * hidden});
  sums.written = true;
  op.call("matmul",
          {sums, op.input(0),
           op.packed(1, "_turned", turned(op.op.constant(1, "weights").floats, 4 * hidden, inputs)),
           op.packed(3, "_sum", std::move(bias))},
          "matmul", product_fields(steps * sequences, inputs, 4 * hidden));
  sums.written = false;
  const CArgument y = op.output(0, {steps, 1, sequences, hidden});
  op.call(
      "lstm",
      {y, sums,
       op.packed(2, "_turned", turned(op.op.constant(2, "weights").floats, 4 * hidden, hidden)),
       op.scratch(sequences * hidden), op.number(steps), op.number(sequences), op.number(hidden)});
}
EMIT_OPERATOR(LSTM, emit_lstm);

}  // namespace
}  // namespace crema

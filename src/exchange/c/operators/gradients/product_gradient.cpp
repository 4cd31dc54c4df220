// Gradients of convolutions and matrix products.
#include "exchange/c/gradient_emit.h"
#include "exchange/c/operators/convolution_emit.h"

namespace crema {
namespace {

constexpr int64_t kRows = 8;  // GRADIENT_ROWS of conv_gradient.c

CFields gradient_fields(const CConvolution& shape) {
  CFields fields;
  fields.add("samples", shape.samples).add("groups", shape.groups);
  fields.add("channels", shape.channels).add("outputs", shape.outputs);
  fields.add("taps", shape.taps()).text("window", shape.window.text());
  return fields;
}

void emit_conv(GradientEmit& op) {
  const Shape &x = op.shape(), &w = op.shape(1);
  const CWindow window = read_window(op, x, {w.dims().begin() + 2, w.dims().end()});
  const int64_t groups = op.op.int_of("group", 1), outputs = w[0] / groups, taps = w.count(1);
  const CFields fields = gradient_fields({window, x[0], groups, w[1], outputs});
  const CArgument dy = op.dy();
  const int64_t products = x[0] * w.count() * window.positions();
  if (op.needs(2))
    op.call("sum_rows",
            {op.gradient(2), dy, op.number(x[0]), op.number(w[0]), op.number(window.positions())});
  if (op.needs(1)) {
    op.call("conv_weight_gradient", {op.gradient(1), dy, op.input(0), op.scratch(kRows * taps)},
            "conv_gradient", fields);
    op.count_products(products);
  }
  if (op.needs(0)) {
    op.call("conv_input_gradient", {op.gradient(0), dy, op.input(1), op.scratch(taps + outputs)},
            "conv_gradient", fields);
    op.count_products(products);
  }
}
EMIT_GRADIENT(Conv, emit_conv);

// The gradient of its input is the convolution that it turns round.
void emit_conv_transpose(GradientEmit& op) {
  const Shape& x = op.shape();
  const CConvolution shape = transposed_convolution(op);
  const CWindow& window = shape.window;
  const CArgument dy = op.dy();
  const int64_t products = x.count() * shape.taps();
  if (op.needs(2))
    op.call("sum_rows",
            {op.gradient(2), dy, op.number(x[0]), op.number(shape.groups * shape.channels),
             op.number(window.in[0] * window.in[1] * window.in[2])});
  if (op.needs(1)) {
    op.call("conv_weight_gradient",
            {op.gradient(1), op.input(0), dy, op.scratch(kRows * shape.taps())}, "conv_gradient",
            gradient_fields(shape));
    op.count_products(products);
  }
  if (!op.needs(0)) return;
  const CArgument blocks = pack_blocks(op, op.input(1), shape);
  call_conv(op, shape, op.gradient(0), dy, blocks, op.text("NULL"), "{NO_ACTIVATION, 0, 0}");
  op.count_products(products);
}
EMIT_GRADIENT(ConvTranspose, emit_conv_transpose);

void emit_gemm(GradientEmit& op) {
  const Shape &x = op.shape(0), &w = op.shape(1);
  const bool turned = op.op.int_of("transB", 0) != 0;
  require(op.op.int_of("transA", 0) == 0, "its first operand is turned");
  const int64_t rows = x[0], inner = x[1], columns = w[turned ? 0 : 1];
  const CArgument dy = op.dy();
  if (op.needs(2))
    op.call("sum_rows",
            {op.gradient(2), dy, op.number(rows), op.number(columns), op.number(int64_t{1})});
  if (op.needs(1)) {
    const CArgument column = op.scratch(rows);
    const CArgument a = turned ? dy : op.input(0), b = turned ? op.input(0) : dy;
    op.call("outer_products",
            {op.gradient(1), a, b, column, op.number(rows), op.number(w[0]), op.number(w[1])});
    op.count_products(rows * inner * columns);
  }
  if (!op.needs(0)) return;
  op.count_products(rows * inner * columns);
  if (turned) {
    op.call("multiply_rows", {op.gradient(0), dy, op.input(1), op.number(rows), op.number(columns),
                              op.number(inner)});
    return;
  }
  CFields fields;
  fields.add("rows", rows).add("inner", columns).add("columns", inner);
  fields.text("activation", "{NO_ACTIVATION, 0, 0}");
  op.call("inner_product", {op.gradient(0), dy, op.input(1), op.text("NULL")}, "inner_product",
          fields);
}
EMIT_GRADIENT(Gemm, emit_gemm);

}  // namespace
}  // namespace crema

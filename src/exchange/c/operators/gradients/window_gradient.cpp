// Gradients of poolings and of normalizations without weights.
#include "exchange/c/gradient_emit.h"
#include "exchange/c/operators/norm_emit.h"
#include "exchange/c/operators/window_emit.h"

namespace crema {
namespace {

void emit_max_pool(GradientEmit& op) {
  const Shape& x = op.shape();
  const CWindow window = read_window(op, x, op.op.ints_of("kernel_shape"));
  const CArgument dy = op.dy();
  op.call("max_pool_gradient", {op.gradient(0), dy, op.input(0), op.number(x[0] * x[1])}, "window",
          window.fields());
}
EMIT_GRADIENT(MaxPool, emit_max_pool);

void emit_average_pool(GradientEmit& op) {
  const Shape& x = op.shape();
  const CWindow window = read_window(op, x, op.op.ints_of("kernel_shape"));
  const CArgument dy = op.dy();
  op.call(
      "average_pool_gradient",
      {op.gradient(0), dy, op.number(x[0] * x[1]), op.number(op.op.int_of("count_include_pad", 0))},
      "window", window.fields());
}
EMIT_GRADIENT(AveragePool, emit_average_pool);

void emit_global_average_pool(GradientEmit& op) {
  const Shape& x = op.shape();
  const CArgument dy = op.dy();
  op.call("spread", {op.gradient(0), dy, op.number(x[0] * x[1]), op.number(x.count(2))});
}
EMIT_GRADIENT(GlobalAveragePool, emit_global_average_pool);

void emit_global_max_pool(GradientEmit& op) {
  const Shape& x = op.shape();
  const int64_t size = x.count(2);
  CWindow window;
  window.in = window.kernel = {1, 1, size};
  window.out = window.stride = window.dilation = {1, 1, 1};
  window.pad = {0, 0, 0};
  const CArgument dy = op.dy();
  op.call("max_pool_gradient", {op.gradient(0), dy, op.input(0), op.number(x[0] * x[1])}, "window",
          window.fields());
}
EMIT_GRADIENT(GlobalMaxPool, emit_global_max_pool);

constexpr int64_t kSome = 16;  // SOME of lrn_gradient.c

void emit_lrn(GradientEmit& op) {
  const CArgument dy = op.dy();
  op.call("lrn_gradient", {op.gradient(0), dy, op.input(0), op.scratch(2 * kSome * op.shape()[1])},
          "lrn", lrn_fields(op));
}
EMIT_GRADIENT(LRN, emit_lrn);

void emit_lrn_within_gradient(GradientEmit& op) {
  const CArgument dy = op.dy();
  CCall& call =
      op.call("lrn_within_gradient",
              {op.gradient(0), dy, op.input(0), op.scratch(lrn_row(op) + op.shape().count(2))},
              "lrn_within", lrn_within_fields(op));
  if (dy.shift == 0) call.over = dy.index;
}
EMIT_GRADIENT(LrnWithin, emit_lrn_within_gradient);

void emit_mvn_gradient(GradientEmit& op) {
  const CArgument dy = op.dy();
  CCall& call = op.call("mvn_gradient", {op.gradient(0), dy, op.result(0), op.result(1)}, "mvn",
                        mvn_fields(op));
  if (dy.shift == 0) call.over = dy.index;
}
EMIT_GRADIENT(Mvn, emit_mvn_gradient);

}  // namespace
}  // namespace crema

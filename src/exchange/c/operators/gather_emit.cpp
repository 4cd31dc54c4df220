// Operators that take elements at indices, and resizing.
#include "exchange/c/operator_emit.h"

namespace crema {
namespace {

void require_real(const OperatorEmit& op) {
  require(op.type() == CType::real, "it takes from integers");
}

void emit_gather(OperatorEmit& op) {
  require_real(op);
  const Shape &x = op.shape(), &indices = op.shape(1);
  const int axis = op.op.axis_in(op.op.int_of("axis", 0), x.axes());
  std::vector<int64_t> extents(x.dims().begin(), x.dims().begin() + axis);
  extents.insert(extents.end(), indices.dims().begin(), indices.dims().end());
  extents.insert(extents.end(), x.dims().begin() + axis + 1, x.dims().end());
  const CArgument y = op.output(0, Shape(extents));
  op.call("gather", {y, op.input(0), op.input(1), op.number(x.count(0, axis)), op.number(x[axis]),
                     op.number(indices.count()), op.number(x.count(axis + 1))});
}
EMIT_OPERATOR(Gather, emit_gather);

// Along an axis; the indices may be fewer than the elements along that one only.
int elementwise_axis(const OperatorEmit& op) {
  const Shape &x = op.shape(), &indices = op.shape(1);
  const int axis = op.op.axis_in(op.op.int_of("axis", 0), x.axes());
  for (int i = 0; i < x.axes(); ++i)
    require(i == axis || x[i] == indices[i], "its indices leave out parts of another axis");
  return axis;
}

void emit_gather_elements(OperatorEmit& op) {
  require_real(op);
  const Shape &x = op.shape(), &indices = op.shape(1);
  const int axis = elementwise_axis(op);
  const CArgument y = op.output(0, indices);
  op.call("gather_elements",
          {y, op.input(0), op.input(1), op.number(x.count(0, axis)), op.number(x[axis]),
           op.number(indices[axis]), op.number(x.count(axis + 1))});
}
EMIT_OPERATOR(GatherElements, emit_gather_elements);

void emit_scatter_elements(OperatorEmit& op) {
  require_real(op);
  require(op.op.string_of("reduction", "none") == "none", "its reduction is not written by Crema");
  const Shape &x = op.shape(), &indices = op.shape(1);
  const int axis = elementwise_axis(op);
  const CArgument y = op.output(0, x);
  op.call("scatter_elements",
          {y, op.input(0), op.input(1), op.input(2), op.number(x.count(0, axis)),
           op.number(x[axis]), op.number(indices[axis]), op.number(x.count(axis + 1))});
}
EMIT_OPERATOR(ScatterElements, emit_scatter_elements);

void emit_resize(OperatorEmit& op) {
  require_real(op);
  const Shape& x = op.shape();
  require(x.axes() == 4 && op.op.has(2), "it does not scale images by factors");
  const std::vector<float> scales = op.op.constant(2, "the factors").floats;
  require(scales.size() == 4 && scales[0] == 1 && scales[1] == 1, "it scales other axes");
  const Shape result{x[0], x[1], static_cast<int64_t>(static_cast<double>(x[2]) * scales[2]),
                     static_cast<int64_t>(static_cast<double>(x[3]) * scales[3])};
  const std::string mode = op.op.string_of("mode", "nearest");
  const std::string corners = op.op.string_of("coordinate_transformation_mode", "half_pixel");
  std::vector<CArgument> arguments = {op.output(0, result), op.input(0),     op.number(x[0] * x[1]),
                                      op.number(x[2]),      op.number(x[3]), op.number(result[2]),
                                      op.number(result[3])};
  if (mode == "nearest" && corners == "asymmetric") {
    arguments.push_back(op.number(scales[2]));
    arguments.push_back(op.number(scales[3]));
    op.call("resize_nearest", arguments);
  } else {
    require(mode == "linear" && corners == "align_corners", "its mode is not written by Crema");
    op.call("resize_linear", arguments);
  }
}
EMIT_OPERATOR(Resize, emit_resize);

void emit_grid_sample(OperatorEmit& op) {
  const Shape &x = op.shape(), &grid = op.shape(1);
  const std::string mode = op.op.string_of("mode", "linear");
  const std::string padding = op.op.string_of("padding_mode", "zeros");
  require(x.axes() == 4 && (mode == "linear" || mode == "bilinear") &&
              (padding == "zeros" || padding == "border"),
          "its mode is not written by Crema");
  CFields fields;
  fields.add("samples", x[0]).add("channels", x[1]).add("rows", x[2]).add("columns", x[3]);
  fields.add("places", grid[1] * grid[2]).add("corners", op.op.int_of("align_corners", 0));
  fields.add("border", int64_t{padding == "border"});
  const CArgument y = op.output(0, {x[0], x[1], grid[1], grid[2]});
  op.call("grid_sample", {y, op.input(0), op.input(1)}, "grid_sample", fields);
}
EMIT_OPERATOR(GridSample, emit_grid_sample);

}  // namespace
}  // namespace crema

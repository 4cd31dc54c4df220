// Poolings of regions.
#include "exchange/c/operator_emit.h"

namespace crema {
namespace {

CFields region_fields(const OperatorEmit& op, int64_t cell_rows, int64_t cell_columns) {
  const Shape& x = op.shape();
  CFields fields;
  fields.add("images", x[0]).add("channels", x[1]).add("rows", x[2]).add("columns", x[3]);
  fields.add("regions", op.shape(1)[0]).add("cell_rows", cell_rows);
  fields.add("cell_columns", cell_columns);
  fields.text("scale", c_float(op.op.float_of("spatial_scale", 1)));
  return fields;
}

void emit_max_roi_pool(OperatorEmit& op) {
  const std::vector<int64_t> cells = op.op.ints_of("pooled_shape");
  const CFields fields = region_fields(op, cells[0], cells[1]);
  const CArgument y = op.output(0, {op.shape(1)[0], op.shape()[1], cells[0], cells[1]});
  op.call("max_roi_pool", {y, op.input(0), op.input(1)}, "max_roi_pool", fields);
}
EMIT_OPERATOR(MaxRoiPool, emit_max_roi_pool);

void emit_roi_align(OperatorEmit& op) {
  require(op.op.string_of("mode", "avg") == "avg", "its mode is not written by Crema");
  const int64_t rows = op.op.int_of("output_height", 1), columns = op.op.int_of("output_width", 1);
  const std::string corners = op.op.string_of("coordinate_transformation_mode", "half_pixel");
  CFields fields = region_fields(op, rows, columns);
  fields.add("samples", op.op.int_of("sampling_ratio", 0));
  fields.text("shift", corners == "half_pixel" ? "0.5f" : "0");
  const CArgument y = op.output(0, {op.shape(1)[0], op.shape()[1], rows, columns});
  op.call("roi_align", {y, op.input(0), op.input(1), op.input(2)}, "roi_align", fields);
}
EMIT_OPERATOR(RoiAlign, emit_roi_align);

}  // namespace
}  // namespace crema

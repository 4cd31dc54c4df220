// Operators that arrange elements in other ways.
#include <algorithm>
#include <limits>

#include "exchange/c/operators/walk.h"

namespace crema {
CSlice read_slice(const OperatorEmit& op) {
  const Shape& x = op.shape();
  const std::vector<int64_t> starts = op.op.ints(1, "the first positions");
  const std::vector<int64_t> ends = op.op.ints(2, "the ends");
  std::vector<int64_t> axes, strides;
  if (op.op.has(3)) axes = op.op.ints(3, "the axes");
  if (op.op.has(4)) strides = op.op.ints(4, "the steps");
  CSlice slice;
  slice.steps = contiguous_steps(x);
  slice.result = x;
  Shape& result = slice.result;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int axis = op.op.axis_in(axes.empty() ? static_cast<int64_t>(i) : axes[i], x.axes());
    const int64_t extent = x[axis], stride = strides.empty() ? 1 : strides[i];
    const auto limited = [&](int64_t at) {
      if (at < 0) at = at < -extent ? -1 : at + extent;
      return stride > 0 ? std::clamp<int64_t>(at, 0, extent) : std::min(at, extent - 1);
    };
    const int64_t first = std::max<int64_t>(limited(starts[i]), 0), end = limited(ends[i]);
    const int64_t way = stride > 0 ? end - first : first - end;
    result[axis] = std::max<int64_t>((way + std::abs(stride) - 1) / std::abs(stride), 0);
    require(result[axis] > 0, "it takes nothing");
    slice.from += first * slice.steps[axis];
    slice.steps[axis] *= stride;
    slice.is_piece =
        slice.is_piece && stride == 1 && (result[axis] == extent || x.count(0, axis) == 1);
  }
  // A piece of the axes behind those of extent 1 is contiguous.
  for (int axis = 0, cut = -1; axis < x.axes(); ++axis) {
    if (result[axis] != x[axis] && cut < 0) cut = axis;
    if (cut >= 0 && axis > cut && result[axis] != x[axis]) slice.is_piece = false;
  }
  return slice;
}
namespace {

void emit_identity(OperatorEmit& op) { op.view(0, op.shape()); }
EMIT_OPERATOR(Identity, emit_identity);
EMIT_OPERATOR(Dropout, emit_identity);

void emit_reshape(OperatorEmit& op) {
  const Shape& x = op.shape();
  std::vector<int64_t> extents = op.op.ints(1, "the shape");
  int64_t known = 1;
  int open = -1;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0 && op.op.int_of("allowzero", 0) == 0) extents[i] = x[static_cast<int>(i)];
    if (extents[i] == -1)
      open = static_cast<int>(i);
    else
      known *= extents[i];
  }
  if (open >= 0) extents[open] = x.count() / known;
  op.view(0, Shape(extents));
}
EMIT_OPERATOR(Reshape, emit_reshape);

void emit_flatten(OperatorEmit& op) {
  const Shape& x = op.shape();
  int64_t axis = op.op.int_of("axis", 1);
  if (axis < 0) axis += x.axes();
  op.view(0, {x.count(0, static_cast<int>(axis)), x.count(static_cast<int>(axis))});
}
EMIT_OPERATOR(Flatten, emit_flatten);

void emit_squeeze(OperatorEmit& op) {
  const Shape& x = op.shape();
  std::vector<bool> leaves(x.axes());
  const std::vector<int64_t> axes = op.op.ints_or_input("axes", 1, 13);
  for (int axis = 0; axis < x.axes(); ++axis) leaves[axis] = axes.empty() && x[axis] == 1;
  for (const int64_t axis : axes) leaves[op.op.axis_in(axis, x.axes())] = true;
  Shape result;
  for (int axis = 0; axis < x.axes(); ++axis)
    if (!leaves[axis]) result.push_back(x[axis]);
  op.view(0, result);
}
EMIT_OPERATOR(Squeeze, emit_squeeze);

void emit_unsqueeze(OperatorEmit& op) {
  const Shape& x = op.shape();
  const std::vector<int64_t> axes = op.op.ints_or_input("axes", 1, 13);
  const int count = x.axes() + static_cast<int>(axes.size());
  std::vector<bool> is_new(count);
  for (const int64_t axis : axes) is_new[op.op.axis_in(axis, count)] = true;
  Shape result;
  for (int axis = 0, from = 0; axis < count; ++axis) result.push_back(is_new[axis] ? 1 : x[from++]);
  op.view(0, result);
}
EMIT_OPERATOR(Unsqueeze, emit_unsqueeze);

// Copies the input with these steps to a result of this shape.
void emit_copy(OperatorEmit& op, const Shape& result, const std::vector<int64_t>& steps,
               int64_t from = 0, int output = 0) {
  const CType type = op.type();
  const CArgument y = op.output(output, result, type);
  copy_elements(op, y, op.input(0), type, {result.dims(), {steps, contiguous_steps(result)}}, from);
}

void emit_transpose(OperatorEmit& op) {
  const Shape& x = op.shape();
  const std::vector<int64_t> from = contiguous_steps(x);
  std::vector<int64_t> steps, moved;
  Shape result;
  for (const int64_t axis : transposed_order(op)) {
    result.push_back(x[static_cast<int>(axis)]);
    steps.push_back(from[axis]);
    if (result.dims().back() > 1) moved.push_back(axis);
  }
  if (std::is_sorted(moved.begin(), moved.end())) return op.view(0, result);
  emit_copy(op, result, steps);
}
EMIT_OPERATOR(Transpose, emit_transpose);

void emit_slice(OperatorEmit& op) {
  const CSlice slice = read_slice(op);
  if (slice.is_piece) return op.view(0, slice.result, slice.from);
  emit_copy(op, slice.result, slice.steps, slice.from);
}
EMIT_OPERATOR(Slice, emit_slice);

void emit_split(OperatorEmit& op) {
  const Shape& x = op.shape();
  const int axis = op.op.axis_in(op.op.int_of("axis", 0), x.axes());
  const std::vector<int64_t> extents = split_extents(op, axis);
  int64_t from = 0;
  for (int i = 0; i < op.op.outputs(); ++i) {
    Shape result = x;
    result[axis] = extents[i];
    const int64_t begin = from * x.count(axis + 1);
    from += extents[i];
    if (!op.wanted(i)) continue;
    if (x.count(0, axis) == 1) {
      op.view(0, result, begin, i);
    } else {
      emit_copy(op, result, contiguous_steps(x), begin, i);
    }
  }
}
EMIT_OPERATOR(Split, emit_split);

void emit_concat(OperatorEmit& op) {
  const int axis = op.op.axis_in(op.op.int_of("axis", 0), op.shape().axes());
  Shape result = op.shape();
  result[axis] = 0;
  for (int i = 0; i < op.op.inputs(); ++i) result[axis] += op.shape(i)[axis];
  const CType type = op.type();
  const CArgument y = op.output(0, result, type);
  int64_t to = 0;
  for (int i = 0; i < op.op.inputs(); ++i) {
    const Shape& part = op.shape(i);
    const CArgument x = op.input(i);
    CCall& call = copy_elements(
        op, y, x, type, {part.dims(), {contiguous_steps(part), contiguous_steps(result)}}, 0, to);
    if (part.count(0, axis) == 1 && x.kind == CArgument::Kind::value) {
      call.part = x.index;
      call.part_shift = to;
    }
    to += part.count(axis);
  }
}
EMIT_OPERATOR(Concat, emit_concat);

void emit_pad(OperatorEmit& op) {
  require(op.op.string_of("mode", "constant") == "constant", "its mode is not written by Crema");
  require(op.type() == CType::real, "its operand is an integer");
  const Shape& x = op.shape();
  const std::vector<int64_t> pads = op.op.ints(1, "the padding");
  const float value = op.op.has(2) ? op.op.number(2, "the value") : 0;
  const int axes = x.axes();
  Shape result = x, kept = x;
  std::vector<int64_t> from_steps = contiguous_steps(x);
  int64_t from = 0, to = 0;
  for (int axis = 0; axis < axes; ++axis) {
    result[axis] += pads[axis] + pads[axes + axis];
    // Negative padding cuts.
    const int64_t before = std::min<int64_t>(pads[axis], 0);
    kept[axis] += before + std::min<int64_t>(pads[axes + axis], 0);
    from -= before * from_steps[axis];
  }
  const std::vector<int64_t> to_steps = contiguous_steps(result);
  for (int axis = 0; axis < axes; ++axis) to += std::max<int64_t>(pads[axis], 0) * to_steps[axis];
  const CArgument y = op.output(0, result);
  if (result.count() != kept.count())
    op.call("fill", {y, op.number(result.count()), op.number(value)});
  copy_elements(op, y, op.input(0), CType::real, {kept.dims(), {from_steps, to_steps}}, from, to);
}
EMIT_OPERATOR(Pad, emit_pad);

void emit_expand(OperatorEmit& op) {
  const Shape result = common_shape({op.shape(), Shape(op.op.ints(1, "the shape"))});
  if (result.count() == op.shape().count()) return op.view(0, result);
  emit_copy(op, result, steps_along(op.shape(), result));
}
EMIT_OPERATOR(Expand, emit_expand);

void emit_tile(OperatorEmit& op) {
  const Shape& x = op.shape();
  const std::vector<int64_t> repeats = op.op.ints(1, "the repeats"), steps = contiguous_steps(x);
  Shape result = x;
  CWalk walk{{}, {{}, {}}};
  for (int axis = 0; axis < x.axes(); ++axis) result[axis] *= repeats[axis];
  const std::vector<int64_t> to = contiguous_steps(result);
  for (int axis = 0; axis < x.axes(); ++axis) {
    walk.extents.insert(walk.extents.end(), {repeats[axis], x[axis]});
    walk.steps[0].insert(walk.steps[0].end(), {0, steps[axis]});
    walk.steps[1].insert(walk.steps[1].end(), {to[axis] * x[axis], to[axis]});
  }
  const CArgument y = op.output(0, result, op.type());
  copy_elements(op, y, op.input(0), op.type(), walk);
}
EMIT_OPERATOR(Tile, emit_tile);

// Blocks of pixels as channels, or the other way round: axes that are split, reordered and joined.
void emit_blocks(OperatorEmit& op) {
  const Shape& x = op.shape();
  const int64_t block = op.op.int_of("blocksize", 1);
  if (op.op.type() == "SpaceToDepth") {
    const Shape result{x[0], x[1] * block * block, x[2] / block, x[3] / block};
    const Shape order{x[0], block, block, x[1], x[2] / block, x[3] / block};
    const CWalk walk{
        order.dims(),
        {{x.count(1), x[3], 1, x.count(2), x[3] * block, block}, contiguous_steps(order)}};
    const CArgument y = op.output(0, result);
    copy_elements(op, y, op.input(0), CType::real, walk);
    return;
  }
  const int64_t channels = x[1] / (block * block), plane = x.count(2);
  const bool blocks_first = op.op.string_of("mode", "DCR") == "DCR";
  const Shape order{x[0], channels, x[2], block, x[3], block};
  const int64_t channel = blocks_first ? plane : plane * block * block;
  const int64_t step = blocks_first ? plane * channels : plane;
  const CWalk walk{order.dims(),
                   {{x.count(1), channel, x[3], step * block, 1, step}, contiguous_steps(order)}};
  const CArgument y = op.output(0, {x[0], channels, x[2] * block, x[3] * block});
  copy_elements(op, y, op.input(0), CType::real, walk);
}
EMIT_OPERATOR(SpaceToDepth, emit_blocks);
EMIT_OPERATOR(DepthToSpace, emit_blocks);

}  // namespace
}  // namespace crema

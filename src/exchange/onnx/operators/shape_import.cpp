// Operators that move, cut, join or repeat values.
#include <algorithm>
#include <numeric>

#include "exchange/onnx/operator_import.h"
#include "exchange/onnx/operators/broadcast.h"
#include "exchange/onnx/operators/shapes.h"
#include "proto/params/dense.pb.h"
#include "proto/params/forks_yolo.pb.h"
#include "proto/params/modern_shape.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

void give_like_input(OperatorImport& op, const std::string& y) {
  if (op.value(0).is_index) return op.give_index(y);
  if (op.value(0).is_integer) return op.give_integers(y);
  op.give(y);
}

void read_reshape(OperatorImport& op) {
  give_like_input(op, op.reshape(op.index_blob(0), reshaped_extents(op)));
}
IMPORT_OPERATOR(Reshape, read_reshape);
IMPORT_OPERATOR(Flatten, read_reshape);
IMPORT_OPERATOR(Squeeze, read_reshape);
IMPORT_OPERATOR(Unsqueeze, read_reshape);

void read_transpose(OperatorImport& op) {
  give_like_input(op, op.permute(op.blob(0), transposed_order(op)));
}
IMPORT_OPERATOR(Transpose, read_transpose);

void read_concat(OperatorImport& op) {
  std::vector<std::string> parts;
  for (int i = 0; i < op.inputs(); ++i)
    if (op.shape(i).count() > 0) parts.push_back(op.blob(i));
  require(!parts.empty(), "all parts are empty");
  if (parts.size() == 1) return op.give(parts[0]);
  const int axis = OperatorImport::axis_in(op.int_of("axis", 1), op.axes());
  op.give(op.layer("Concat", parts, [&](LayerParameter* layer) {
    if (axis != 1) layer->mutable_concat_param()->set_axis(axis);
  }));
}
IMPORT_OPERATOR(Concat, read_concat);

void read_split(OperatorImport& op) {
  const int axis = OperatorImport::axis_in(op.int_of("axis", 0), op.axes());
  const std::vector<int64_t> parts = split_parts(op, op.shape()[axis]);
  if (parts.size() == 1) return op.give(op.blob(0));
  const std::vector<std::string> tops = op.layer_with_tops(
      "Slice", {op.blob(0)}, static_cast<int>(parts.size()), [&](LayerParameter* layer) {
        SliceParameter* const p = layer->mutable_slice_param();
        if (axis != 1) p->set_axis(axis);
        int64_t at = 0;
        for (size_t i = 0; i + 1 < parts.size(); ++i)
          p->add_slice_point(static_cast<uint32_t>(at += parts[i]));
      });
  std::vector<std::string> unread;
  for (int i = 0; i < op.outputs(); ++i)
    if (!op.wanted(i)) unread.push_back(tops[i]);
  if (!unread.empty())
    op.graph().add("Silence", op.graph().unique_layer(tops[0] + "/silence"), unread, {}, {}, {});
  for (int i = 0; i < op.outputs(); ++i)
    if (op.wanted(i)) op.give(tops[i], i);
}
IMPORT_OPERATOR(Split, read_split);

// The entries of an axis at these positions.
std::string gathered(OperatorImport& op, const std::string& x, int axis,
                     const std::vector<int64_t>& positions) {
  const int64_t extent = op.blob_shape(x)[axis];
  bool in_order = true;
  for (size_t i = 0; i < positions.size(); ++i) {
    require(positions[i] >= 0 && positions[i] < extent, "index ", positions[i],
            " is out of range for ", extent);
    in_order = in_order && positions[i] == positions[0] + static_cast<int64_t>(i);
  }
  require(!positions.empty(), "nothing is left of axis ", axis);
  if (in_order) return op.cut(x, axis, positions.front(), positions.back() + 1);
  const std::string index = op.parameter(Shape{static_cast<int64_t>(positions.size())},
                                         {positions.begin(), positions.end()});
  return op.layer("Gather", {x, index}, [&](LayerParameter* layer) {
    if (axis != 0) layer->mutable_gather_param()->set_axis(axis);
  });
}

void read_slice(OperatorImport& op) {
  std::string x = op.blob(0);
  for (const SlicedAxis& part : sliced_axes(op)) {
    require(part.count > 0, "nothing is left of axis ", part.axis);
    const int64_t extent = op.blob_shape(x)[part.axis];
    if (part.step == -1 && part.first == extent - 1 && part.count == extent) {
      x = op.layer("Reverse", {x}, [&](LayerParameter* layer) {
        layer->mutable_reverse_param()->set_axis(part.axis);
      });
      continue;
    }
    std::vector<int64_t> positions(part.count);
    for (int64_t i = 0; i < part.count; ++i) positions[i] = part.first + i * part.step;
    x = gathered(op, x, part.axis, positions);
  }
  give_like_input(op, x);
}
IMPORT_OPERATOR(Slice, read_slice);

// Rows of a constant table by numbers of a blob.
void read_table(OperatorImport& op) {
  const OnnxTensor& table = op.constant(0, "the table");
  require(table.shape.axes() == 2 && op.int_of("axis", 0) == 0,
          "only rows of a matrix can be looked up by a blob");
  op.give(op.layer("Embed", {op.index_blob(1)},
                   [&](LayerParameter* layer) {
                     EmbedParameter* const p = layer->mutable_embed_param();
                     p->set_num_output(static_cast<uint32_t>(table.shape[1]));
                     p->set_input_dim(static_cast<uint32_t>(table.shape[0]));
                     p->set_bias_term(false);
                   },
                   {{table.shape, table.as_floats()}}));
}

void read_gather(OperatorImport& op) {
  if (op.is_constant(0) && !op.is_constant(1)) return read_table(op);
  const Shape x = op.shape(), index = op.shape(1);
  const int axis = OperatorImport::axis_in(op.int_of("axis", 0), x.axes());
  std::string y;
  if (op.is_constant(1)) {
    std::vector<int64_t> positions = op.ints(1, "the index");
    for (int64_t& position : positions) position += position < 0 ? x[axis] : 0;
    y = gathered(op, op.blob(0), axis, positions);
  } else {
    const std::string flat = op.reshape(op.index_blob(1), {index.count()});
    y = op.layer("Gather", {op.blob(0), flat}, [&](LayerParameter* layer) {
      if (axis != 0) layer->mutable_gather_param()->set_axis(axis);
    });
  }
  std::vector<int64_t> extents(x.dims().begin(), x.dims().begin() + axis);
  extents.insert(extents.end(), index.dims().begin(), index.dims().end());
  extents.insert(extents.end(), x.dims().begin() + axis + 1, x.dims().end());
  give_like_input(op, op.reshape(y, extents));
}
IMPORT_OPERATOR(Gather, read_gather);

void read_expand(OperatorImport& op) {
  const Shape to = broadcast_shape(op.shape(), Shape(op.ints(1, "the shape")));
  std::vector<int64_t> extents = op.shape().dims();
  while (static_cast<int>(extents.size()) < to.axes()) extents.insert(extents.begin(), 1);
  std::string x = op.reshape(op.blob(0), extents);
  for (int axis = 0; axis < to.axes(); ++axis)
    if (extents[axis] != to[axis]) x = op.tile(x, axis, to[axis]);
  give_like_input(op, x);
}
IMPORT_OPERATOR(Expand, read_expand);

void read_tile(OperatorImport& op) {
  const std::vector<int64_t> copies = op.ints(1, "the repeats");
  require(static_cast<int>(copies.size()) == op.axes(), copies.size(), " repeats for ", op.axes(),
          " axes");
  std::string x = op.blob(0);
  for (int axis = 0; axis < op.axes(); ++axis) x = op.tile(x, axis, copies[axis]);
  give_like_input(op, x);
}
IMPORT_OPERATOR(Tile, read_tile);

int64_t block_of(const OperatorImport& op) {
  const int64_t block = op.int_of("blocksize", 0);
  require(op.axes() == 4 && block > 0 && block < 4096, "blocksize ", block, " of ",
          op.shape().brief(), " is none");
  return block;
}

void read_depth_to_space(OperatorImport& op) {
  const int64_t block = block_of(op);
  if (op.string_of("mode", "DCR") == "CRD") {
    return op.give(op.layer("PixelShuffle", {op.blob(0)}, [&](LayerParameter* layer) {
      layer->mutable_pixel_shuffle_param()->set_upscale_factor(static_cast<uint32_t>(block));
    }));
  }
  op.give(op.layer("Reorg", {op.blob(0)}, [&](LayerParameter* layer) {
    layer->mutable_reorg_param()->set_stride(static_cast<uint32_t>(block));
    layer->mutable_reorg_param()->set_reverse(true);
  }));
}
IMPORT_OPERATOR(DepthToSpace, read_depth_to_space);

void read_space_to_depth(OperatorImport& op) {
  require(op.string_of("mode", "DCR") == "DCR", "only mode DCR has layers");
  const int64_t block = block_of(op);
  const Shape x = op.shape();
  require(x[2] % block == 0 && x[3] % block == 0, "blocksize ", block, " does not divide ",
          x.brief());
  const int64_t rows = x[2] / block, columns = x[3] / block;
  std::string y = op.reshape(op.blob(0), {x[0], x[1], rows, block, columns, block});
  y = op.permute(y, {0, 3, 5, 1, 2, 4});
  op.give(op.reshape(y, {x[0], x[1] * block * block, rows, columns}));
}
IMPORT_OPERATOR(SpaceToDepth, read_space_to_depth);

// Padding with values of the image itself.
void pad_by_positions(OperatorImport& op, const PendingPad& pad, const std::string& mode) {
  require(mode == "reflect" || mode == "edge" || mode == "wrap", "no layer pads with mode \"", mode,
          "\"");
  std::string y = op.blob(0);
  for (int axis = 0; axis < op.axes(); ++axis) {
    const int64_t extent = op.shape()[axis];
    if (pad.before[axis] == 0 && pad.behind[axis] == 0) continue;
    std::vector<int64_t> positions;
    for (int64_t i = -pad.before[axis]; i < extent + pad.behind[axis]; ++i) {
      const int64_t period = mode == "wrap" ? extent : std::max<int64_t>(2 * extent - 2, 1);
      int64_t at = (i % period + period) % period;
      if (mode == "reflect" && at >= extent) at = period - at;
      positions.push_back(mode == "edge" ? std::clamp<int64_t>(i, 0, extent - 1) : at);
    }
    y = gathered(op, y, axis, positions);
  }
  op.give(y);
}

void read_pad(OperatorImport& op) {
  const std::vector<int64_t> given = op.ints_or_input("pads", 1, 11);
  std::vector<int64_t> axes(op.axes());
  std::iota(axes.begin(), axes.end(), 0);
  if (op.opset() >= 18 && op.has(3)) axes = op.ints(3, "the axes");
  require(given.size() == 2 * axes.size(), "pads has ", given.size(), " values for ", axes.size(),
          " axes");
  PendingPad pad;
  pad.before.assign(op.axes(), 0);
  pad.behind.assign(op.axes(), 0);
  bool any = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = OperatorImport::axis_in(axes[i], op.axes());
    pad.before[axis] = given[i];
    pad.behind[axis] = given[axes.size() + i];
    require(std::abs(given[i]) < kMaxOnnxElements && std::abs(pad.behind[axis]) < kMaxOnnxElements,
            "a padding of ", given[i], " and ", pad.behind[axis]);
    any = any || given[i] != 0 || pad.behind[axis] != 0;
  }
  if (!any) return op.pass_on();
  const std::string mode = op.string_of("mode", "constant");
  if (mode != "constant") return pad_by_positions(op, pad, mode);
  if (op.opset() < 11)
    pad.value = op.float_of("value", 0);
  else if (op.has(2))
    pad.value = op.number(2, "the value");
  op.give_padded(op.blob(0), std::move(pad));
}
IMPORT_OPERATOR(Pad, read_pad);

}  // namespace
}  // namespace crema

// Layers that move, cut, join or repeat values.
#include <algorithm>
#include <limits>
#include <numeric>

#include "exchange/onnx/layer_export.h"
#include "proto/filler.pb.h"
#include "proto/params/forks_yolo.pb.h"
#include "proto/params/input.pb.h"
#include "proto/params/modern_shape.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

void write_split(LayerExport& layer) {
  for (int i = 0; i < layer.tops(); ++i) layer.write("Identity", {layer.bottom()}, {}, i);
}
EXPORT_LAYER(Split, write_split);

void write_nothing(LayerExport&) {}
EXPORT_LAYER(Silence, write_nothing);

void write_parameter(LayerExport& layer) { layer.write("Identity", {layer.parameter(0)}); }
EXPORT_LAYER(Parameter, write_parameter);

void write_dummy_data(LayerExport& layer) {
  for (const FillerParameter& filler : layer.message().dummy_data_param().data_filler()) {
    if (filler.type() != "constant")
      layer.refuse("its numbers are drawn at random", "make it an input");
  }
  layer.write_constant_tops();
}
EXPORT_LAYER(DummyData, write_dummy_data);

void write_flatten(LayerExport& layer) {
  const FlattenParameter& p = layer.message().flatten_param();
  const Shape& x = layer.bottom_shape();
  if (x.canonical_axis(p.axis()) == 1 && x.canonical_axis(p.end_axis()) == x.axes() - 1)
    return layer.write("Flatten", {layer.bottom()}, {{"axis", int64_t{1}}});
  layer.reshape_to_top(layer.bottom());
}
EXPORT_LAYER(Flatten, write_flatten);

void write_reshape(LayerExport& layer) { layer.reshape_to_top(layer.bottom()); }
EXPORT_LAYER(Reshape, write_reshape);

void write_concat(LayerExport& layer) {
  const ConcatParameter& p = layer.message().concat_param();
  const int64_t axis = p.has_concat_dim() ? static_cast<int64_t>(p.concat_dim())
                                          : layer.bottom_shape().canonical_axis(p.axis());
  std::vector<std::string> inputs;
  for (int i = 0; i < layer.bottoms(); ++i) inputs.push_back(layer.bottom(i));
  layer.write(inputs.size() == 1 ? "Identity" : "Concat", inputs,
              inputs.size() == 1 ? OnnxAttributes{} : OnnxAttributes{{"axis", axis}});
}
EXPORT_LAYER(Concat, write_concat);

// The axis along which the tops are parts of the bottom.
void write_slice(LayerExport& layer) {
  const SliceParameter& p = layer.message().slice_param();
  const Shape& x = layer.bottom_shape();
  if (layer.tops() == 1) return layer.write("Identity", {layer.bottom()});
  const int axis = p.has_slice_dim() ? static_cast<int>(p.slice_dim()) : x.canonical_axis(p.axis());
  if (layer.bottom_value().of_batch[axis])
    layer.require_fixed_batch("it cuts the batch into parts of a given size");
  std::vector<int64_t> parts;
  std::vector<std::string> outputs;
  for (int i = 0; i < layer.tops(); ++i) {
    parts.push_back(layer.top_shape(i)[axis]);
    outputs.push_back(layer.top(i));
  }
  const OnnxAttribute along{"axis", int64_t{axis}};
  if (layer.opset() >= 13) {
    layer.graph().add("Split", {layer.bottom(), layer.ints(parts)}, outputs, {along});
  } else {
    layer.graph().add("Split", {layer.bottom()}, outputs, {along, {"split", parts}});
  }
}
EXPORT_LAYER(Slice, write_slice);
EXPORT_LAYER(SliceHalf, write_slice);

// The bottom's axis that each axis of the top takes: the named ones, then the others in their order.
std::vector<int64_t> order_of(const Shape& x,
                              const google::protobuf::RepeatedField<uint32_t>& named) {
  std::vector<int64_t> order(named.begin(), named.end());
  for (int64_t axis = 0; axis < x.axes(); ++axis)
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
  return order;
}

void write_permute(LayerExport& layer) {
  const Shape& x = layer.bottom_shape();
  layer.write("Transpose", {layer.bottom()},
              {{"perm", order_of(x, layer.message().permute_param().order())}});
}
EXPORT_LAYER(Permute, write_permute);

void write_transpose(LayerExport& layer) {
  const TransposeParameter& p = layer.message().transpose_param();
  const Shape& x = layer.bottom_shape();
  std::vector<int64_t> order;
  if (p.dim_size() == 2 && x.axes() > 2) {
    order.resize(x.axes());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[x.canonical_axis(p.dim(0))], order[x.canonical_axis(p.dim(1))]);
  } else {
    google::protobuf::RepeatedField<uint32_t> named;
    for (const int axis : p.dim()) named.Add(static_cast<uint32_t>(x.canonical_axis(axis)));
    order = order_of(x, named);
  }
  layer.write("Transpose", {layer.bottom()}, {{"perm", order}});
}
EXPORT_LAYER(Transpose, write_transpose);

void write_tile(LayerExport& layer) {
  const TileParameter& p = layer.message().tile_param();
  std::vector<int64_t> repeats(layer.bottom_shape().axes(), 1);
  repeats[layer.bottom_shape().canonical_axis(p.axis())] = p.tiles();
  layer.write("Tile", {layer.bottom(), layer.ints(repeats)});
}
EXPORT_LAYER(Tile, write_tile);

std::string mirrored(LayerExport& layer, const std::string& x, int axis) {
  return layer.node("Slice",
                    {x, layer.ints({-1}), layer.ints({std::numeric_limits<int64_t>::min()}),
                     layer.ints({axis}), layer.ints({-1})});
}

void write_reverse(LayerExport& layer) {
  const int axis = layer.bottom_shape().canonical_axis(layer.message().reverse_param().axis());
  layer.write("Identity", {mirrored(layer, layer.bottom(), axis)});
}
EXPORT_LAYER(Reverse, write_reverse);

void write_flip(LayerExport& layer) {
  const FlipParameter& p = layer.message().flip_param();
  std::string x = layer.bottom();
  if (p.flip_height()) x = mirrored(layer, x, 2);
  if (p.flip_width()) x = mirrored(layer, x, 3);
  layer.write("Identity", {x});
}
EXPORT_LAYER(Flip, write_flip);

// Cuts x to these extents on axes from `first` on, at these offsets.
std::string cut(LayerExport& layer, std::string x, const Shape& from, const Shape& to, int first,
                const std::vector<int64_t>& offsets) {
  std::vector<int64_t> starts, ends, axes;
  for (int axis = first; axis < from.axes(); ++axis) {
    if (from[axis] == to[axis]) continue;
    starts.push_back(offsets[axis - first]);
    ends.push_back(offsets[axis - first] + to[axis]);
    axes.push_back(axis);
  }
  if (axes.empty()) return x;
  return layer.node("Slice", {x, layer.ints(starts), layer.ints(ends), layer.ints(axes)});
}

void write_crop(LayerExport& layer) {
  const CropParameter& p = layer.message().crop_param();
  const Shape &x = layer.bottom_shape(), &size = layer.bottom_shape(1);
  const int first = x.canonical_axis(p.axis());
  std::vector<int64_t> offsets;
  for (int axis = first; axis < x.axes(); ++axis) {
    offsets.push_back(p.offset_size() == 0 ? 0 : p.offset(p.offset_size() == 1 ? 0 : axis - first));
    if (x[axis] != size[axis] && layer.bottom_value().of_batch[axis])
      layer.require_fixed_batch("it cuts the batch");
  }
  layer.write("Identity", {cut(layer, layer.bottom(), x, size, first, offsets)});
}
EXPORT_LAYER(Crop, write_crop);

void write_merge_crop(LayerExport& layer) {
  const MergeCropParameter& p = layer.message().mergecrop_param();
  const Shape &a = layer.bottom_shape(0), &b = layer.bottom_shape(1);
  std::vector<int64_t> offsets;
  for (int axis = 2; axis < a.axes(); ++axis) offsets.push_back((b[axis] - a[axis]) / 2);
  std::vector<std::string> parts = {layer.bottom(0), cut(layer, layer.bottom(1), b, a, 2, offsets)};
  for (int i = 0; i < std::min(p.forward_size(), 2); ++i)
    if (p.forward(i) == 0) parts[i] = layer.node("Mul", {parts[i], layer.scalar(0)});
  if (p.operation() == MergeCropParameter::ADD) return layer.write("Add", parts);
  layer.write("Concat", parts, {{"axis", int64_t{1}}});
}
EXPORT_LAYER(MergeCrop, write_merge_crop);

void write_shuffle_channel(LayerExport& layer) {
  const int64_t groups = layer.message().shuffle_channel_param().group();
  const Shape& x = layer.bottom_shape();
  const int64_t batch = layer.extents_of(layer.bottom_value())[0];
  const std::string parts =
      layer.reshape(layer.bottom(), {batch, groups, x[1] / groups, x.count(2)});
  layer.reshape_to_top(
      layer.node("Transpose", {parts}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
}
EXPORT_LAYER(ShuffleChannel, write_shuffle_channel);

void write_pixel_shuffle(LayerExport& layer) {
  const int64_t factor = layer.message().pixel_shuffle_param().upscale_factor();
  layer.write("DepthToSpace", {layer.bottom()},
              {{"blocksize", factor}, {"mode", std::string("CRD")}});
}
EXPORT_LAYER(PixelShuffle, write_pixel_shuffle);

void write_reorg(LayerExport& layer) {
  const ReorgParameter& p = layer.message().reorg_param();
  const int64_t block = p.stride();
  if (p.reverse()) {
    return layer.write("DepthToSpace", {layer.bottom()},
                       {{"blocksize", block}, {"mode", std::string("DCR")}});
  }
  // Darknet reads the blob as if it had fewer channels and larger images.
  const Shape& x = layer.bottom_shape();
  const int64_t batch = layer.extents_of(layer.bottom_value())[0];
  const std::string image =
      layer.reshape(layer.bottom(), {batch, x[1] / (block * block), x[2] * block, x[3] * block});
  layer.reshape_to_top(layer.node("SpaceToDepth", {image}, {{"blocksize", block}}));
}
EXPORT_LAYER(Reorg, write_reorg);

void write_batch_reindex(LayerExport& layer) {
  layer.write("Gather", {layer.bottom(0), layer.cast(layer.bottom(1), onnx::TensorProto::INT64)},
              {{"axis", int64_t{0}}});
}
EXPORT_LAYER(BatchReindex, write_batch_reindex);

void write_gather(LayerExport& layer) {
  if (layer.bottoms() == 1 || layer.bottoms() == layer.tops()) {
    for (int i = 0; i < layer.tops(); ++i) layer.write("Identity", {layer.bottom(i)}, {}, i);
    return;
  }
  const int axis = layer.bottom_shape().canonical_axis(layer.message().gather_param().axis());
  layer.write("Gather", {layer.bottom(0), layer.cast(layer.bottom(1), onnx::TensorProto::INT64)},
              {{"axis", int64_t{axis}}});
}
EXPORT_LAYER(Gather, write_gather);

}  // namespace
}  // namespace crema

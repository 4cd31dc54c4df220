// Layers that move, cut, join or repeat values.
#include <algorithm>
#include <numeric>

#include "exchange/caffe/rewrites/parts.h"
#include "proto/params/pointwise.pb.h"
#include "proto/params/shape.pb.h"

namespace crema {
namespace {

using google::protobuf::RepeatedField;

// Parts into which a Permute may be cut: nets with more layers than that are of no use.
constexpr int64_t kMostParts = 16;

// Axes that a permutation moves together, as one.
struct AxisGroup {
  int first;       // the first of these axes in the bottom
  int64_t extent;  // the product of their extents
};

// The groups in the order of the top, without axes of extent 1.
std::vector<AxisGroup> groups_of(const Shape& x, const std::vector<int>& order) {
  std::vector<AxisGroup> groups;
  int last = -1;  // the axis before in the order, of those that count
  const auto next_counted = [&](int axis) {
    do ++axis;
    while (axis < x.axes() && x[axis] == 1);
    return axis;
  };
  for (const int axis : order) {
    if (x[axis] == 1) continue;
    if (!groups.empty() && next_counted(last) == axis)
      groups.back().extent *= x[axis];
    else
      groups.push_back({axis, x[axis]});
    last = axis;
  }
  return groups;
}

// Swaps the last two axes of (outer, a, b, inner), of which one is small, by cutting and joining.
int swapped(LayerRewrite& layer, int x, const std::vector<int64_t>& e) {
  const bool cuts_a = e[1] <= e[2];
  const int64_t parts = cuts_a ? e[1] : e[2];
  const int rows = reshaped(layer, x, e);
  const std::vector<int> slices =
      layer.add_many("Slice", {rows}, static_cast<int>(parts), [&](LayerParameter* to) {
        to->mutable_slice_param()->set_axis(cuts_a ? 1 : 2);
        for (int64_t i = 1; i < parts; ++i)
          to->mutable_slice_param()->add_slice_point(static_cast<uint32_t>(i));
      });
  std::vector<int> turned;
  for (const int slice : slices)
    turned.push_back(reshaped(layer, slice,
                              cuts_a ? std::vector<int64_t>{e[0], e[2], 1, e[3]}
                                     : std::vector<int64_t>{e[0], 1, e[1], e[3]}));
  return layer.add("Concat", turned, [&](LayerParameter* to) {
    to->mutable_concat_param()->set_axis(cuts_a ? 2 : 1);
  });
}

void permute(LayerRewrite& layer, const std::vector<int>& order) {
  const Shape& x = layer.bottom_shape();
  const std::vector<AxisGroup> to = groups_of(x, order);
  std::vector<AxisGroup> from = to;
  std::sort(from.begin(), from.end(),
            [](const AxisGroup& a, const AxisGroup& b) { return a.first < b.first; });
  // The only pair of neighbours that is swapped.
  size_t at = 0;
  while (at < to.size() && to[at].first == from[at].first) ++at;
  if (at == to.size()) return write_reshaped(layer, layer.bottom(), layer.top_shape());
  bool is_swap = at + 1 < to.size() && to[at].first == from[at + 1].first &&
                 to[at + 1].first == from[at].first;
  for (size_t i = at + 2; i < to.size(); ++i) is_swap = is_swap && to[i].first == from[i].first;
  if (!is_swap || std::min(from[at].extent, from[at + 1].extent) > kMostParts)
    layer.refuse("reordering axes by Slice and Concat would take too many of them",
                 "choose a dialect with Permute, such as ssd");
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < at; ++i) outer *= from[i].extent;
  for (size_t i = at + 2; i < from.size(); ++i) inner *= from[i].extent;
  const int y =
      swapped(layer, layer.bottom(), {outer, from[at].extent, from[at + 1].extent, inner});
  write_reshaped(layer, y, layer.top_shape());
}

std::vector<int> whole_order(const Shape& x, const std::vector<int>& named) {
  std::vector<int> order = named;
  for (int axis = 0; axis < x.axes(); ++axis)
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
  return order;
}

void rewrite_permute(LayerRewrite& layer) {
  const auto& order = layer.message().permute_param().order();
  permute(layer, whole_order(layer.bottom_shape(), {order.begin(), order.end()}));
}
REWRITE_LAYER(Permute, rewrite_permute);

void rewrite_transpose(LayerRewrite& layer) {
  const TransposeParameter& p = layer.message().transpose_param();
  const Shape& x = layer.bottom_shape();
  std::vector<int> named;
  for (const int axis : p.dim()) named.push_back(x.canonical_axis(axis));
  if (named.size() == 2 && x.axes() > 2) {
    std::vector<int> order(x.axes());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[named[0]], order[named[1]]);
    named = order;
  }
  layer.write("Permute", {layer.bottom()}, [&](LayerParameter* to) {
    for (const int axis : whole_order(x, named))
      to->mutable_permute_param()->add_order(static_cast<uint32_t>(axis));
  });
}
REWRITE_LAYER(Transpose, rewrite_transpose);

void rewrite_shuffle_channel(LayerRewrite& layer) {
  const int64_t groups = layer.message().shuffle_channel_param().group();
  const Shape& x = layer.bottom_shape();
  const int parts = reshaped(layer, layer.bottom(), {x[0], groups, x[1] / groups, x.count(2)});
  const int shuffled = layer.add("Permute", {parts}, [](LayerParameter* to) {
    for (const uint32_t axis : {0, 2, 1, 3}) to->mutable_permute_param()->add_order(axis);
  });
  write_reshaped(layer, shuffled, x);
}
REWRITE_LAYER(ShuffleChannel, rewrite_shuffle_channel);

void rewrite_flatten(LayerRewrite& layer) {
  write_reshaped(layer, layer.bottom(), layer.top_shape());
}
REWRITE_LAYER(Flatten, rewrite_flatten);

// The new shape as a whole, for readers that do not know `axis` and `num_axes`.
void rewrite_reshape(LayerRewrite& layer) {
  const ReshapeParameter& p = layer.message().reshape_param();
  if (!p.has_axis() && !p.has_num_axes())
    layer.refuse("the new shape is not one that it takes", "use fewer axes");
  write_reshaped(layer, layer.bottom(), layer.top_shape());
}
REWRITE_LAYER(Reshape, rewrite_reshape);

// The older names of the axis.
void rewrite_concat(LayerRewrite& layer) {
  if (layer.bottoms() == 1) return layer.pass_on(layer.bottom());
  const ConcatParameter p = layer.message().concat_param();
  if (!p.has_concat_dim())
    layer.refuse("its axis is not one that it takes", "join channels or positions");
  layer.write_changed("Concat",
                      [&](LayerParameter* to) {
                        to->mutable_concat_param()->clear_concat_dim();
                        to->mutable_concat_param()->set_axis(static_cast<int>(p.concat_dim()));
                      },
                      {});
}
REWRITE_LAYER(Concat, rewrite_concat);

void rewrite_slice(LayerRewrite& layer) {
  if (layer.tops() == 1) return layer.pass_on(layer.bottom());
  const SliceParameter p = layer.message().slice_param();
  if (layer.type() == "Slice" && !p.has_slice_dim())
    layer.refuse("its axis is not one that it takes", "cut channels or positions");
  const bool halves = layer.type() == "SliceHalf";
  const int axis = p.has_slice_dim() ? static_cast<int>(p.slice_dim())
                                     : layer.bottom_shape().canonical_axis(p.axis());
  const auto half = static_cast<uint32_t>(layer.bottom_shape()[axis] / 2);
  layer.write_changed("Slice",
                      [&](LayerParameter* to) {
                        to->mutable_slice_param()->clear_slice_dim();
                        to->mutable_slice_param()->set_axis(axis);
                        if (halves) to->mutable_slice_param()->add_slice_point(half);
                      },
                      {});
}
REWRITE_LAYER(Slice, rewrite_slice);
REWRITE_LAYER(SliceHalf, rewrite_slice);

void rewrite_split(LayerRewrite& layer) {
  for (int i = 0; i < layer.tops(); ++i) layer.pass_on(layer.bottom(), i);
}
REWRITE_LAYER(Split, rewrite_split);

// What it hides is then a result of the net.
void rewrite_silence(LayerRewrite&) {}
REWRITE_LAYER(Silence, rewrite_silence);

void rewrite_gather(LayerRewrite& layer) {
  if (layer.bottoms() != 1 && layer.bottoms() != layer.tops())
    layer.refuse("it selects by computed indices", "end the net before it with -cut");
  for (int i = 0; i < layer.tops(); ++i) layer.pass_on(layer.bottom(i), i);
}
REWRITE_LAYER(Gather, rewrite_gather);

void rewrite_merge_crop(LayerRewrite& layer) {
  const MergeCropParameter& p = layer.message().mergecrop_param();
  const Shape a = layer.bottom_shape(0), b = layer.bottom_shape(1);
  std::vector<int> parts = {layer.bottom(0), layer.bottom(1)};
  for (int axis = 2; axis < a.axes(); ++axis) {
    const int64_t first = (b[axis] - a[axis]) / 2;
    parts[1] = part_of(layer, parts[1], axis, first, first + a[axis]);
  }
  for (int i = 0; i < std::min(p.forward_size(), 2); ++i)
    if (p.forward(i) == 0) parts[i] = power_of(layer, parts[i], 0, 0);
  if (p.operation() == MergeCropParameter::ADD) return write_sum(layer, parts, {});
  layer.write("Concat", parts);
}
REWRITE_LAYER(MergeCrop, rewrite_merge_crop);

void rewrite_crop(LayerRewrite& layer) {
  const CropParameter& p = layer.message().crop_param();
  const Shape x = layer.bottom_shape(), y = layer.top_shape();
  const int first = x.canonical_axis(p.axis());
  std::vector<int> cut;
  for (int axis = first; axis < x.axes(); ++axis)
    if (x[axis] != y[axis]) cut.push_back(axis);
  if (cut.empty()) return layer.pass_on(layer.bottom());
  int part = layer.bottom();
  for (size_t i = 0; i < cut.size(); ++i) {
    const int axis = cut[i];
    const int64_t offset =
        p.offset_size() == 0 ? 0 : p.offset(p.offset_size() == 1 ? 0 : axis - first);
    if (i + 1 == cut.size()) return write_part(layer, part, axis, offset, offset + y[axis]);
    part = part_of(layer, part, axis, offset, offset + y[axis]);
  }
}
REWRITE_LAYER(Crop, rewrite_crop);

void rewrite_tile(LayerRewrite& layer) {
  const TileParameter& p = layer.message().tile_param();
  if (p.tiles() > kMostParts)
    layer.refuse(cat("a Concat of ", p.tiles(), " copies is too many"), "repeat fewer");
  layer.write("Concat", std::vector<int>(p.tiles(), layer.bottom()), [&](LayerParameter* to) {
    to->mutable_concat_param()->set_axis(layer.bottom_shape().canonical_axis(p.axis()));
  });
}
REWRITE_LAYER(Tile, rewrite_tile);

// Values one by one, or all of an axis mirrored.
int mirrored(LayerRewrite& layer, int x, int axis) {
  const Shape shape = layer.shape_of(x);
  if (shape[axis] > kMostParts)
    layer.refuse(cat("mirroring ", shape[axis], " positions by Slice and Concat takes too many"),
                 "mirror before the net");
  std::vector<int> parts =
      layer.add_many("Slice", {x}, static_cast<int>(shape[axis]), [&](LayerParameter* to) {
        to->mutable_slice_param()->set_axis(axis);
        for (int64_t i = 1; i < shape[axis]; ++i)
          to->mutable_slice_param()->add_slice_point(static_cast<uint32_t>(i));
      });
  std::reverse(parts.begin(), parts.end());
  return layer.add("Concat", parts,
                   [axis](LayerParameter* to) { to->mutable_concat_param()->set_axis(axis); });
}

void rewrite_reverse(LayerRewrite& layer) {
  const int axis = layer.bottom_shape().canonical_axis(layer.message().reverse_param().axis());
  write_reshaped(layer, mirrored(layer, layer.bottom(), axis), layer.top_shape());
}
REWRITE_LAYER(Reverse, rewrite_reverse);

void rewrite_flip(LayerRewrite& layer) {
  const FlipParameter& p = layer.message().flip_param();
  int x = layer.bottom();
  if (p.flip_height()) x = mirrored(layer, x, 2);
  if (p.flip_width()) x = mirrored(layer, x, 3);
  if (x == layer.bottom()) return layer.pass_on(x);
  write_reshaped(layer, x, layer.top_shape());
}
REWRITE_LAYER(Flip, rewrite_flip);

}  // namespace
}  // namespace crema

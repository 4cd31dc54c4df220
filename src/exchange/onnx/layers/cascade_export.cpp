// Layers of detectors on several scales (MS-CNN, Cascade R-CNN).
#include <algorithm>
#include <cmath>

#include "exchange/onnx/layers/boxes_export.h"
#include "proto/params/forks_multiscale.pb.h"

namespace crema {
namespace {

struct Normalized {
  std::vector<float> mean = {0, 0, 0, 0}, deviation = {1, 1, 1, 1};

  explicit Normalized(const BBoxRegParameter& p) {
    if (p.bbox_mean_size() == 0 || p.bbox_std_size() == 0) return;
    mean.assign(p.bbox_mean().begin(), p.bbox_mean().end());
    deviation.assign(p.bbox_std().begin(), p.bbox_std().end());
  }
  // Returns code * deviation + mean.
  std::string undone(LayerExport& layer, const std::string& code,
                     const std::vector<int64_t>& shape) const {
    const std::string scaled = layer.node("Mul", {code, layer.floats(shape, deviation)});
    return layer.node("Add", {scaled, layer.floats(shape, mean)});
  }
};

void write_decode_bbox(LayerExport& layer) {
  const Normalized normalized(layer.message().bbox_reg_param());
  const std::string predictions = layer.reshape(layer.bottom(0), {-1, 8});
  const std::string regions = layer.reshape(layer.bottom(1), {-1, 5});
  const std::string code = normalized.undone(layer, layer.slice(predictions, 1, 4, 8), {4});
  const std::string first = layer.slice(regions, 1, 1, 3);
  const std::string end = layer.node("Add", {layer.slice(regions, 1, 3, 5), layer.scalar(1)});
  const std::string size = layer.node("Sub", {end, first}), half = layer.scalar(0.5f);
  const std::string middle = layer.node("Mul", {layer.node("Add", {first, end}), half});
  const std::string centre =
      layer.node("Add", {middle, layer.node("Mul", {layer.slice(code, 1, 0, 2), size})});
  const std::string grown =
      layer.node("Mul", {layer.node("Exp", {layer.slice(code, 1, 2, 4)}), size});
  const std::string reach = layer.node("Mul", {grown, half});
  const std::string last = layer.node("Sub", {layer.node("Add", {centre, reach}), layer.scalar(1)});
  layer.reshape_to_top(layer.node(
      "Concat", {layer.slice(regions, 1, 0, 1), layer.node("Sub", {centre, reach}), last},
      {{"axis", int64_t{1}}}));
}
EXPORT_LAYER(DecodeBBox, write_decode_bbox);

struct FieldMap {
  std::string boxes, scores;  // (images, positions, 4), (images, positions)
};

FieldMap read_fields(LayerExport& layer, int bottom) {
  const BoxOutputParameter& p = layer.message().box_output_param();
  const Shape& x = layer.bottom_shape(bottom);
  const int64_t images = layer.bottom_value(bottom).of_batch[0] ? -1 : x[0];
  const int64_t count = x.count(2), classes = x[1] - 4;
  const auto step = static_cast<float>(p.downsample_rate(bottom));
  const auto wide = static_cast<float>(p.field_w(bottom));
  const auto high = static_cast<float>(p.field_h(bottom));
  const std::string values = layer.reshape(layer.bottom(bottom), {images, x[1], count});
  std::string score = layer.reduce("ReduceMax", layer.slice(values, 1, 1, classes), {1}, false);
  score = layer.node("Sub", {score, layer.squeeze(layer.slice(values, 1, 0, 1), {1})});

  const Normalized normalized(layer.message().bbox_reg_param());
  const std::string code =
      normalized.undone(layer, layer.slice(values, 1, classes, classes + 4), {1, 4, 1});
  std::vector<float> middles(2 * count);
  for (int64_t i = 0; i < count; ++i) {
    middles[i] = (static_cast<float>(i % x[3]) + 0.5f) * step;
    middles[count + i] = (static_cast<float>(i / x[3]) + 0.5f) * step;
  }
  const std::string field = layer.floats({1, 2, 1}, {wide, high});
  const float shift = 1 / p.field_xyr(), growth = std::log(p.field_whr());
  const std::string centre = layer.node(
      "Add", {layer.node("Mul", {layer.clip(layer.slice(code, 1, 0, 2), -shift, shift), field}),
              layer.floats({1, 2, count}, middles)});
  const std::string grown =
      layer.node("Exp", {layer.clip(layer.slice(code, 1, 2, 4), -growth, growth)});
  const std::string reach =
      layer.node("Mul", {layer.node("Mul", {grown, field}), layer.scalar(0.5f)});
  // A box that begins outside the image is moved inside; its far side is clipped.
  const std::string begin = layer.node("Sub", {centre, reach});
  const std::string size = layer.node("Sub", {layer.node("Add", {centre, reach}), begin});
  const std::string first = layer.node("Max", {begin, layer.scalar(0)});
  const std::string room = layer.node(
      "Sub",
      {layer.floats({1, 2, 1}, {static_cast<float>(x[3]) * step, static_cast<float>(x[2]) * step}),
       first});
  const std::string end = layer.node("Add", {first, layer.node("Min", {size, room})});
  const std::string smaller =
      layer.reduce("ReduceMin", layer.node("Sub", {end, first}), {1}, false);
  const std::string small =
      layer.node("Less", {smaller, layer.scalar(static_cast<float>(p.min_size()))});
  const std::string worse = layer.node("Less", {score, layer.scalar(p.fg_thr())});
  FieldMap map;
  map.scores =
      layer.node("Where", {layer.node("Or", {small, worse}), layer.scalar(kNeverFound), score});
  map.boxes = layer.node("Transpose", {layer.node("Concat", {first, end}, {{"axis", int64_t{1}}})},
                         {{"perm", std::vector<int64_t>{0, 2, 1}}});
  return map;
}

void write_box_output(LayerExport& layer) {
  const BoxOutputParameter& p = layer.message().box_output_param();
  if (p.nms_type() != "IOU") {
    layer.refuse(cat("boxes suppress others by ", p.nms_type(), ", the operator by IOU"),
                 "write nms_type: \"IOU\"");
  }
  std::vector<std::string> all_boxes, all_scores;
  int64_t count = 0;
  for (int i = 0; i < layer.bottoms(); ++i) {
    const FieldMap map = read_fields(layer, i);
    all_boxes.push_back(map.boxes);
    all_scores.push_back(map.scores);
    count += layer.bottom_shape(i).count(2);
  }
  // In reverse order, because the layer prefers the last of equal scores.
  const auto joined = [&](const std::vector<std::string>& parts) {
    const std::string all =
        parts.size() == 1 ? parts[0] : layer.node("Concat", parts, {{"axis", int64_t{1}}});
    return layer.node("Slice", {all, layer.ints({-1}), layer.ints({-count - 1}), layer.ints({1}),
                                layer.ints({-1})});
  };
  std::string boxes = joined(all_boxes), scores = joined(all_scores);
  if (p.max_nms_num() > 0 && p.max_nms_num() < count) {
    const LargestValues best = largest_values(layer, scores, 2, 1, p.max_nms_num(), false);
    scores = best.values;
    const std::string places =
        layer.node("Expand", {layer.unsqueeze(best.places, {2}), layer.ints({1, 1, 4})});
    boxes = layer.node("GatherElements", {boxes, places}, {{"axis", int64_t{1}}});
  }
  scores = layer.unsqueeze(scores, {1});
  const int64_t most = p.max_post_nms_num() > 0 ? p.max_post_nms_num() : count;
  const std::string found = suppress_boxes(layer, boxes, scores, most, p.iou_thr());
  const std::string image = layer.cast(columns_of(layer, found, {0}), onnx::TensorProto::FLOAT);
  const std::string corners = at_indices(layer, boxes, columns_of(layer, found, {0, 2}));
  const std::string score = layer.reshape(at_indices(layer, scores, found), {-1, 1});
  layer.any_extent(0);
  for (int top = 0; top < layer.tops(); ++top) {
    std::vector<std::string> parts = {image, corners};
    std::vector<float> none = {0, 1, 1, 10, 10};
    if (top > 0) {
      parts.push_back(score);
      none.assign(6, 0);
    }
    const std::string rows = layer.node("Concat", parts, {{"axis", int64_t{1}}});
    const auto numbers = static_cast<int64_t>(none.size());
    const std::string with_one =
        rows_or(layer, rows, layer.floats({1, numbers}, none), layer.ints({1}));
    layer.write("Reshape", {with_one, layer.ints({-1, numbers, 1, 1})}, {}, top);
  }
}
EXPORT_LAYER(BoxOutput, write_box_output);

}  // namespace
}  // namespace crema

// Detections of YOLO.
#include <cmath>
#include <limits>

#include "exchange/onnx/layers/boxes_export.h"
#include "proto/params/forks_yolo.pb.h"

namespace crema {
namespace {

// What the boxes of a map have in common.
struct YoloMap {
  std::vector<float> sizes;  // width and height of each box
  float cell = 1;            // size of a cell, in the unit of the sizes
};

struct YoloOutput {
  int64_t classes = 0;
  bool softmax = true;
  float least_score = 0;
  float overlap = 0.45f;
};

struct ScoredBoxes {
  std::string boxes, scores, classes;  // (images, boxes, 4), (images, boxes), (images, boxes)
};

// All boxes of a map: the boxes of the first anchor, row by row, then those of the next one.
ScoredBoxes boxes_of_map(LayerExport& layer, int bottom, const YoloMap& map,
                         const YoloOutput& output) {
  const Shape& x = layer.bottom_shape(bottom);
  const int64_t images = layer.bottom_value(bottom).of_batch[0] ? -1 : x[0];
  const auto anchors = static_cast<int64_t>(map.sizes.size()) / 2;
  const int64_t cells = x.count(2), count = anchors * cells;
  std::vector<float> corners, halves;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t anchor = i / cells, row = i % cells / x[3], column = i % x[3];
    corners.insert(corners.end(), {static_cast<float>(column), static_cast<float>(row)});
    halves.insert(halves.end(),
                  {map.sizes[2 * anchor] / (static_cast<float>(x[3]) * map.cell) / 2,
                   map.sizes[2 * anchor + 1] / (static_cast<float>(x[2]) * map.cell) / 2});
  }
  std::string values =
      layer.reshape(layer.bottom(bottom), {images, anchors, 5 + output.classes, cells});
  values = layer.node("Transpose", {values}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  values = layer.reshape(values, {images, count, 5 + output.classes});

  const std::string sides = layer.floats({2}, {static_cast<float>(x[3]), static_cast<float>(x[2])});
  std::string centre = layer.node("Sigmoid", {layer.slice(values, 2, 0, 2)});
  centre = layer.node("Add", {centre, layer.floats({1, count, 2}, corners)});
  centre = layer.node("Div", {centre, sides});
  const std::string reach = layer.node("Mul", {layer.node("Exp", {layer.slice(values, 2, 2, 4)}),
                                               layer.floats({1, count, 2}, halves)});
  ScoredBoxes scored;
  scored.boxes =
      layer.node("Concat", {layer.node("Sub", {centre, reach}), layer.node("Add", {centre, reach})},
                 {{"axis", int64_t{2}}});
  const std::string object =
      layer.squeeze(layer.node("Sigmoid", {layer.slice(values, 2, 4, 5)}), {2});
  std::string classes = layer.slice(values, 2, 5, 5 + output.classes);
  scored.classes =
      layer.node("ArgMax", {classes}, {{"axis", int64_t{2}}, {"keepdims", int64_t{0}}});
  classes = output.softmax ? layer.node("Softmax", {classes}, {{"axis", int64_t{2}}})
                           : layer.node("Sigmoid", {classes});
  scored.scores = layer.node("Mul", {object, layer.reduce("ReduceMax", classes, {2}, false)});
  return scored;
}

void write_yolo_output(LayerExport& layer, const std::vector<YoloMap>& maps,
                       const YoloOutput& output) {
  std::vector<std::string> boxes, scores, classes;
  int64_t count = 0;
  for (size_t i = 0; i < maps.size(); ++i) {
    const auto bottom = static_cast<int>(i);
    const ScoredBoxes scored = boxes_of_map(layer, bottom, maps[i], output);
    boxes.push_back(scored.boxes);
    scores.push_back(scored.scores);
    classes.push_back(scored.classes);
    count += static_cast<int64_t>(maps[i].sizes.size()) / 2 * layer.bottom_shape(bottom).count(2);
  }
  const auto joined = [&](const std::vector<std::string>& parts) {
    return parts.size() == 1 ? parts[0] : layer.node("Concat", parts, {{"axis", int64_t{1}}});
  };
  const std::string all = joined(boxes);
  std::string score = joined(scores);
  score = layer.node("Where", {layer.node("Less", {score, layer.scalar(output.least_score)}),
                               layer.scalar(kNeverFound), score});
  score = layer.unsqueeze(score, {1});
  // The operator suppresses above its threshold; here equality suffices, and with 0 the best remains.
  const bool one = output.overlap <= 0;
  const float overlap = one ? 0 : std::nextafter(output.overlap, -1.f);
  const std::string found = suppress_boxes(layer, all, score, one ? 1 : count, overlap);
  const std::string image_and_box = columns_of(layer, found, {0, 2});
  const std::string label =
      layer.reshape(at_indices(layer, joined(classes), image_and_box), {-1, 1});
  const std::string image_and_class = layer.node(
      "Concat", {columns_of(layer, found, {0}), layer.node("Add", {label, layer.ints({1})})},
      {{"axis", int64_t{1}}});
  write_detection_rows(layer, image_and_class, at_indices(layer, score, found),
                       at_indices(layer, all, image_and_box));
}

void write_yolo_2(LayerExport& layer) {
  const YoloDetectionOutputParameter& p = layer.message().yolo_detection_output_param();
  YoloOutput output;
  output.classes = p.num_classes();
  output.least_score = p.confidence_threshold();
  output.overlap = p.nms_threshold();
  YoloMap map;
  map.sizes.assign(p.biases().begin(), p.biases().begin() + 2 * p.num_box());
  write_yolo_output(layer, std::vector<YoloMap>(layer.bottoms(), map), output);
}
EXPORT_LAYER(YoloDetectionOutput, write_yolo_2);

void write_yolo_3(LayerExport& layer) {
  const Yolov3DetectionOutputParameter& p = layer.message().yolov3_detection_output_param();
  YoloOutput output;
  output.classes = p.num_classes();
  output.softmax = false;
  output.least_score = std::nextafter(p.confidence_threshold(), std::numeric_limits<float>::max());
  output.overlap = p.nms_threshold();
  std::vector<YoloMap> maps(layer.bottoms());
  for (int i = 0; i < layer.bottoms(); ++i) {
    maps[i].cell = static_cast<float>(p.anchors_scale(i));
    for (uint32_t n = 0; n < p.num_box(); ++n) {
      const auto box = static_cast<int>(p.mask(static_cast<int>(i * p.num_box() + n)));
      maps[i].sizes.insert(maps[i].sizes.end(), {p.biases(2 * box), p.biases(2 * box + 1)});
    }
  }
  write_yolo_output(layer, maps, output);
}
EXPORT_LAYER(Yolov3DetectionOutput, write_yolo_3);

}  // namespace
}  // namespace crema

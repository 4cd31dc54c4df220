#include "exchange/onnx/layers/boxes_export.h"

namespace crema {

LargestValues largest_values(LayerExport& layer, std::string x, int axes, int axis, int64_t count,
                             bool fill_up) {
  if (fill_up) {
    std::vector<int64_t> room(2 * axes);
    room[axes + axis] = count;
    x = layer.pad(x, room, kNeverFound);
  }
  LargestValues best{layer.graph().unique(layer.name("best")),
                     layer.graph().unique(layer.name("places"))};
  layer.graph().add("TopK", {x, layer.ints({count})}, {best.values, best.places},
                    {{"axis", int64_t{axis}}, {"largest", int64_t{1}}, {"sorted", int64_t{1}}});
  return best;
}

std::string suppress_boxes(LayerExport& layer, const std::string& boxes, const std::string& scores,
                           int64_t most, float overlap, float least_score) {
  return layer.node("NonMaxSuppression",
                    {boxes, scores, layer.ints({most}), layer.floats({1}, {overlap}),
                     layer.floats({1}, {least_score})});
}

std::string columns_of(LayerExport& layer, const std::string& rows, std::vector<int64_t> numbers) {
  return layer.node("Gather", {rows, layer.ints(numbers)}, {{"axis", int64_t{1}}});
}

std::string at_indices(LayerExport& layer, const std::string& x, const std::string& rows) {
  return layer.node("GatherND", {x, rows});
}

std::string images_of(LayerExport& layer, int bottom) {
  const OnnxValue& value = layer.bottom_value(bottom);
  if (!value.of_batch[0]) return layer.ints({value.shape[0]});
  return layer.slice(layer.node("Shape", {value.name}), 0, 0, 1);
}

std::string rows_or(LayerExport& layer, const std::string& rows, const std::string& others,
                    const std::string& number) {
  const std::string count = layer.slice(layer.node("Shape", {rows}), 0, 0, 1);
  const std::string none =
      layer.cast(layer.node("Equal", {count, layer.ints({0})}), onnx::TensorProto::INT64);
  const std::string wanted = layer.node(
      "Slice", {others, layer.ints({0}), layer.node("Mul", {none, number}), layer.ints({0})});
  return layer.node("Concat", {rows, wanted}, {{"axis", int64_t{0}}});
}

// A row for each image: its number and six times -1.
static std::string rows_of_nothing(LayerExport& layer, const std::string& images) {
  const OnnxValue& value = layer.bottom_value();
  if (!value.of_batch[0]) {
    std::vector<float> rows;
    for (int64_t n = 0; n < value.shape[0]; ++n)
      rows.insert(rows.end(), {static_cast<float>(n), -1, -1, -1, -1, -1, -1});
    return layer.floats({value.shape[0], 7}, rows);
  }
  const std::string count = layer.squeeze(images, {0});
  const std::string numbers = layer.node("Range", {layer.index(0), count, layer.index(1)});
  const std::string column = layer.reshape(layer.cast(numbers, onnx::TensorProto::FLOAT), {-1, 1});
  const std::string extents =
      layer.node("Concat", {images, layer.ints({6})}, {{"axis", int64_t{0}}});
  const std::string rest = layer.node("Expand", {layer.scalar(-1), extents});
  return layer.node("Concat", {column, rest}, {{"axis", int64_t{1}}});
}

void write_detection_rows(LayerExport& layer, const std::string& image_and_class,
                          const std::string& scores, const std::string& boxes) {
  const std::string numbers = layer.cast(image_and_class, onnx::TensorProto::FLOAT);
  const std::string found = layer.node("Concat", {numbers, layer.reshape(scores, {-1, 1}), boxes},
                                       {{"axis", int64_t{1}}});
  const std::string images = images_of(layer, 0);
  const std::string all = rows_or(layer, found, rows_of_nothing(layer, images), images);
  layer.any_extent(2);
  layer.reshape(all, {1, 1, -1, 7}, true);
}

}  // namespace crema

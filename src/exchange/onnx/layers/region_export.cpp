// Layers that pool regions of a feature map.
#include "exchange/onnx/layers/sampling_export.h"
#include "proto/params/forks_detection.pb.h"

namespace crema {
namespace {

// RoIs as rows of five numbers.
std::string region_rows(LayerExport& layer) {
  if (layer.bottom_shape(1).axes() == 2) return layer.bottom(1);
  return layer.reshape(layer.bottom(1), {-1, 5});
}

// The same with RoIs that are wider and higher by this share of their size on each side.
std::string wider_rows(LayerExport& layer, float share) {
  const std::string rows = region_rows(layer);
  if (share == 0) return rows;
  const std::string first = layer.slice(rows, 1, 1, 3), last = layer.slice(rows, 1, 3, 5);
  const std::string size = layer.node("Add", {layer.node("Sub", {last, first}), layer.scalar(1)});
  const std::string more = layer.node("Mul", {size, layer.scalar(share)});
  return layer.node("Concat",
                    {layer.slice(rows, 1, 0, 1), layer.node("Sub", {first, more}),
                     layer.node("Add", {last, more})},
                    {{"axis", int64_t{1}}});
}

void write_roi_pooling(LayerExport& layer) {
  const ROIPoolingParameter& p = layer.message().roi_pooling_param();
  layer.write("MaxRoiPool", {layer.bottom(0), wider_rows(layer, p.pad_ratio())},
              {{"pooled_shape", std::vector<int64_t>{p.pooled_h(), p.pooled_w()}},
               {"spatial_scale", p.spatial_scale()}});
}
EXPORT_LAYER(ROIPooling, write_roi_pooling);

// One coordinate of the corners of all cells, (R, cells + 1), and which of them are on the map.
struct CornerLines {
  std::string at, inside;
};

CornerLines corner_lines(LayerExport& layer, const std::string& rows, int64_t axis, int64_t cells,
                         int64_t extent, float scale) {
  const auto end_of = [&](int64_t column) {
    const std::string end = layer.slice(rows, 1, column, column + 1);
    return layer.node("Sub", {layer.node("Mul", {end, layer.scalar(scale)}), layer.scalar(0.5f)});
  };
  const std::string begin = end_of(1 + axis), end = end_of(3 + axis);
  const std::string each =
      layer.node("Div", {layer.node("Sub", {end, begin}), layer.scalar(static_cast<float>(cells))});
  std::vector<float> numbers;
  for (int64_t i = 0; i <= cells; ++i) numbers.push_back(static_cast<float>(i));
  const std::string point =
      layer.node("Add", {begin, layer.node("Mul", {each, layer.floats({1, cells + 1}, numbers)})});
  const auto last = static_cast<float>(extent - 1);
  const std::string before = layer.node("Less", {point, layer.scalar(-0.5f)});
  const std::string behind = layer.node("Greater", {point, layer.scalar(last + 0.5f)});
  const std::string outside = layer.node("Or", {before, behind});
  return {layer.clip(point, 0, last),
          layer.node("And", {layer.node("Not", {outside}), layer.node("Less", {begin, end})})};
}

// Cascade R-CNN's form. The images are stacked into one, since a region may be in any of them.
void write_roi_corners(LayerExport& layer) {
  const ROIPoolingParameter& p = layer.message().roi_pooling_param();
  const Shape& x = layer.bottom_shape();
  const int64_t down = p.pooled_h(), across = p.pooled_w();
  layer.require_fixed_batch("it pools regions of given images");
  const std::string rows = wider_rows(layer, p.pad_ratio());
  const CornerLines y = corner_lines(layer, rows, 1, down, x[2], p.spatial_scale());
  const CornerLines columns = corner_lines(layer, rows, 0, across, x[3], p.spatial_scale());
  const std::string image = layer.slice(rows, 1, 0, 1);
  const std::string known =
      layer.node("And", {layer.node("Greater", {image, layer.scalar(-1)}),
                         layer.node("Less", {image, layer.scalar(static_cast<float>(x[0]))})});
  const std::string first = layer.node("Mul", {image, layer.scalar(static_cast<float>(x[2]))});
  const std::string row = layer.unsqueeze(layer.node("Add", {y.at, first}), {2});
  const std::string column = layer.unsqueeze(columns.at, {1}), zero = layer.scalar(0);
  std::vector<std::string> both = {layer.node("Add", {layer.node("Mul", {row, zero}), column}),
                                   layer.node("Add", {row, layer.node("Mul", {column, zero})})};
  for (std::string& coordinate : both)
    coordinate = layer.reshape(coordinate, {1, 1, -1, across + 1});
  const std::string positions = layer.node("Concat", both, {{"axis", int64_t{1}}});
  std::string map =
      layer.node("Transpose", {layer.bottom()}, {{"perm", std::vector<int64_t>{1, 0, 2, 3}}});
  map = layer.reshape(map, {1, x[1], x[0] * x[2], x[3]});
  std::string values = sampled(layer, map, x[0] * x[2], x[3], positions, true);
  values = layer.reshape(values, {x[1], -1, down + 1, across + 1});
  values = layer.node("Transpose", {values}, {{"perm", std::vector<int64_t>{1, 0, 2, 3}}});
  std::string inside =
      layer.node("And", {layer.unsqueeze(y.inside, {2}), layer.unsqueeze(columns.inside, {1})});
  inside = layer.node("And", {inside, layer.unsqueeze(known, {2})});
  layer.write("Where", {layer.unsqueeze(inside, {1}), values, zero});
}

void write_roi_align(LayerExport& layer) {
  const ROIAlignParameter& p = layer.message().roi_align_param();
  if (!layer.message().has_roi_align_param()) return write_roi_corners(layer);
  const std::string rows = wider_rows(layer, p.pad_ratio());
  const std::string image = layer.reshape(layer.slice(rows, 1, 0, 1), {-1});
  OnnxAttributes settings = {{"mode", std::string("avg")},
                             {"output_height", static_cast<int64_t>(p.pooled_h())},
                             {"output_width", static_cast<int64_t>(p.pooled_w())},
                             {"sampling_ratio", int64_t{std::max(p.sampling_ratio(), 0)}},
                             {"spatial_scale", p.spatial_scale()}};
  if (layer.opset() >= 16)
    settings.push_back({"coordinate_transformation_mode", std::string("output_half_pixel")});
  layer.write(
      "RoiAlign",
      {layer.bottom(0), layer.slice(rows, 1, 1, 5), layer.cast(image, onnx::TensorProto::INT64)},
      settings);
}
EXPORT_LAYER(ROIAlign, write_roi_align);

// Values rounded to whole numbers, halves away from zero.
std::string rounded(LayerExport& layer, const std::string& x) {
  const std::string size = layer.node("Abs", {x});
  const std::string whole = layer.node("Floor", {size});
  const std::string rest = layer.node("Sub", {size, whole});
  const std::string up =
      layer.cast(layer.node("Not", {layer.node("Less", {rest, layer.scalar(0.5f)})}),
                 onnx::TensorProto::FLOAT);
  return layer.node("Mul", {layer.node("Add", {whole, up}), layer.node("Sign", {x})});
}

// The share that each position of an axis has in the mean of each cell: (R, cells, extent).
std::string shares_of_cells(LayerExport& layer, const std::string& begin, const std::string& end,
                            int64_t cells, int64_t extent) {
  const std::string size = layer.node("Max", {layer.node("Sub", {end, begin}), layer.scalar(0.1f)});
  const std::string each = layer.node("Div", {size, layer.scalar(static_cast<float>(cells))});
  const auto border = [&](const char* round, int64_t first) {
    std::vector<float> numbers;
    for (int64_t cell = 0; cell < cells; ++cell)
      numbers.push_back(static_cast<float>(cell + first));
    const std::string moved = layer.node("Mul", {layer.floats({1, cells, 1}, numbers), each});
    return layer.node(round, {layer.node("Add", {moved, begin})});
  };
  std::vector<float> places;
  for (int64_t i = 0; i < extent; ++i) places.push_back(static_cast<float>(i));
  const std::string place = layer.floats({1, 1, extent}, places);
  const std::string before = layer.node("Less", {place, border("Floor", 0)});
  const std::string within = layer.node("Less", {place, border("Ceil", 1)});
  const std::string has = layer.cast(layer.node("And", {layer.node("Not", {before}), within}),
                                     onnx::TensorProto::FLOAT);
  const std::string count =
      layer.node("Max", {layer.reduce("ReduceSum", has, {2}, true), layer.scalar(1)});
  return layer.node("Div", {has, count});
}

// The mean of each cell, from its own channels: a product of the shares of all positions with the
// map, for each cell.
void write_psroi_pooling(LayerExport& layer) {
  const PSROIPoolingParameter& p = layer.message().psroi_pooling_param();
  const Shape& x = layer.bottom_shape();
  const int64_t cells = p.group_size(), outputs = p.output_dim(), positions = x.count(2);
  layer.require_fixed_batch("it pools regions of given images");
  const std::string rows = region_rows(layer);
  const std::string scale = layer.scalar(p.spatial_scale());
  const std::string ends = rounded(layer, layer.slice(rows, 1, 1, 5));
  const auto side = [&](int64_t axis, int64_t extent) {  // axis: 0 is x
    const auto at = [&](int64_t number, float more) {
      std::string place = layer.slice(ends, 1, number, number + 1);
      if (more != 0) place = layer.node("Add", {place, layer.scalar(more)});
      return layer.reshape(layer.node("Mul", {place, scale}), {-1, 1, 1});
    };
    return shares_of_cells(layer, at(axis, 0), at(axis + 2, 1), cells, extent);
  };
  const std::string down = layer.reshape(side(1, x[2]), {-1, cells, 1, x[2], 1});
  const std::string across = layer.reshape(side(0, x[3]), {-1, 1, cells, 1, x[3]});
  std::string shares =
      layer.reshape(layer.node("Mul", {down, across}), {-1, cells * cells, 1, positions});
  std::vector<float> numbers;
  for (int64_t n = 0; n < x[0]; ++n) numbers.push_back(static_cast<float>(n));
  const std::string of_image =
      layer.cast(layer.node("Equal", {layer.slice(rows, 1, 0, 1), layer.floats({x[0]}, numbers)}),
                 onnx::TensorProto::FLOAT);
  shares = layer.node("Mul", {shares, layer.reshape(of_image, {-1, 1, x[0], 1})});
  shares = layer.node("Transpose", {shares}, {{"perm", std::vector<int64_t>{1, 0, 2, 3}}});
  shares = layer.reshape(shares, {cells * cells, -1, x[0] * positions});
  std::string map = layer.reshape(layer.bottom(), {x[0], outputs, cells * cells, positions});
  map = layer.node("Transpose", {map}, {{"perm", std::vector<int64_t>{2, 0, 3, 1}}});
  map = layer.reshape(map, {cells * cells, x[0] * positions, outputs});
  const std::string means = layer.node("MatMul", {shares, map});
  layer.reshape_to_top(layer.node("Transpose", {means}, {{"perm", std::vector<int64_t>{1, 2, 0}}}));
}
EXPORT_LAYER(PSROIPooling, write_psroi_pooling);

}  // namespace
}  // namespace crema

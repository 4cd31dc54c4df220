// Proposal, and native versions of layers in Python.
#include <cmath>

#include "exchange/onnx/layers/boxes_export.h"
#include "proto/params/forks_detection.pb.h"

namespace crema {
namespace {

constexpr float kPixel = 1;  // a box from pixel 3 to pixel 3 is one pixel wide

// The centres and the sizes of all anchors, position by position.
struct Anchors {
  std::vector<float> centres, sizes;

  Anchors(const ProposalParameter& p, int64_t height, int64_t width) {
    const auto base = static_cast<float>(p.base_size());
    const float centre = (base - kPixel) / 2;
    for (int64_t i = 0; i < height * width; ++i) {
      const auto x = static_cast<float>(i % width * p.feat_stride());
      const auto y = static_cast<float>(i / width * p.feat_stride());
      for (const float ratio : p.ratio()) {
        const float across = std::floor(std::sqrt(base * base / ratio) + 0.5f);
        const float down = std::floor(across * ratio + 0.5f);
        for (const float scale : p.scale()) {
          centres.insert(centres.end(), {centre + x + kPixel / 2, centre + y + kPixel / 2});
          sizes.insert(sizes.end(), {across * scale, down * scale});
        }
      }
    }
  }
};

// The boxes (images, boxes, 4), clipped to the images of these sizes.
std::string proposed_boxes(LayerExport& layer, const Anchors& anchors, const std::string& sizes,
                           int64_t images) {
  const auto count = static_cast<int64_t>(anchors.sizes.size()) / 2;
  const Shape& map = layer.bottom_shape(1);
  std::string shifts = layer.reshape(layer.bottom(1), {images, map[1] / 4, 4, map.count(2)});
  shifts = layer.node("Transpose", {shifts}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  shifts = layer.reshape(shifts, {images, count, 4});
  const std::string size = layer.floats({1, count, 2}, anchors.sizes);
  const std::string centre =
      layer.node("Add", {layer.node("Mul", {layer.slice(shifts, 2, 0, 2), size}),
                         layer.floats({1, count, 2}, anchors.centres)});
  const std::string reach = layer.node(
      "Mul", {layer.node("Mul", {layer.node("Exp", {layer.slice(shifts, 2, 2, 4)}), size}),
              layer.scalar(0.5f)});
  const std::string boxes =
      layer.node("Concat", {layer.node("Sub", {centre, reach}), layer.node("Add", {centre, reach})},
                 {{"axis", int64_t{2}}});
  const std::string borders =
      layer.node("Sub", {columns_of(layer, sizes, {1, 0, 1, 0}), layer.scalar(kPixel)});
  return layer.node("Min",
                    {layer.node("Max", {boxes, layer.scalar(0)}), layer.unsqueeze(borders, {1})});
}

void write_proposal(LayerExport& layer) {
  const ProposalParameter& p = layer.layer().message().proposal_param();
  const Shape &map = layer.bottom_shape(), &info = layer.bottom_shape(2);
  const int64_t images = layer.bottom_value().of_batch[0] ? -1 : map[0];
  const int64_t numbers = info.count(1);
  const std::string sizes =
      layer.reshape(layer.bottom(2), {layer.bottom_value(2).of_batch[0] ? -1 : info[0], numbers});
  const Anchors anchors(p, map[2], map[3]);
  const auto count = static_cast<int64_t>(anchors.sizes.size()) / 2;
  std::string boxes = proposed_boxes(layer, anchors, sizes, images);

  std::string scores = layer.slice(layer.bottom(), 1, map[1] / 2, map[1]);
  scores = layer.node("Transpose", {scores}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  scores = layer.reshape(scores, {images, count});
  const std::string sides = layer.node(
      "Add", {layer.node("Sub", {layer.slice(boxes, 2, 2, 4), layer.slice(boxes, 2, 0, 2)}),
              layer.scalar(kPixel)});
  const std::string factors = columns_of(
      layer, sizes, numbers > 3 ? std::vector<int64_t>{3, 2} : std::vector<int64_t>{2, 2});
  const std::string least = layer.node(
      "Mul", {layer.unsqueeze(factors, {1}), layer.scalar(static_cast<float>(p.min_size()))});
  const std::string smaller =
      layer.reduce("ReduceMin", layer.node("Sub", {sides, least}), {2}, false);
  scores = layer.node(
      "Where", {layer.node("Less", {smaller, layer.scalar(0)}), layer.scalar(kNeverFound), scores});
  if (p.pre_nms_topn() < count) {
    const LargestValues best = largest_values(layer, scores, 2, 1, p.pre_nms_topn(), false);
    scores = best.values;
    const std::string places =
        layer.node("Expand", {layer.unsqueeze(best.places, {2}), layer.ints({1, 1, 4})});
    boxes = layer.node("GatherElements", {boxes, places}, {{"axis", int64_t{1}}});
  }
  // The operator's boxes end behind their last pixel.
  const std::string whole = layer.node("Add", {boxes, layer.floats({4}, {0, 0, kPixel, kPixel})});
  scores = layer.unsqueeze(scores, {1});
  const std::string found = suppress_boxes(layer, whole, scores, p.post_nms_topn(), p.nms_thresh());
  const std::string image = layer.cast(columns_of(layer, found, {0}), onnx::TensorProto::FLOAT);
  const std::string corners = at_indices(layer, boxes, columns_of(layer, found, {0, 2}));
  layer.any_extent(0);
  layer.write("Concat", {image, corners}, {{"axis", int64_t{1}}});
  if (layer.tops() == 1) return;
  layer.write("GatherND", {scores, found}, {}, 1);
}
EXPORT_LAYER(Proposal, write_proposal);

void write_python(LayerExport& layer) {
  const std::string& type = layer.layer().message().type();
  if (type != "Proposal")
    layer.refuse("it runs Python code", "replace it by layers that can, or end the net before it");
  write_proposal(layer);
}
EXPORT_LAYER(Python, write_python);

}  // namespace
}  // namespace crema

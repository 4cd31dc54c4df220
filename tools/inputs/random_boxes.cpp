#include "tools/inputs/random_boxes.h"

#include <algorithm>

#include "layers/layer_facts.h"
#include "layers/python/param_str.h"
#include "layers/python_hook.h"
#include "proto/layer.pb.h"

namespace crema {
namespace {

struct BoxRows {
  // Rows of 8 that begin with a class; otherwise rows of 5: RoIs, of 7: with a class after the box,
  // of 9: with an inner box. centered: rows of a class from 0, a centre and a size; class_last: of
  // 5, a box and a class.
  bool objects = false, centered = false, class_last = false;
  int64_t columns = 0, images = 1, classes = 0;
  double height = 1, width = 1;  // of an image; 1: relative coordinates
};

double scale_of(const LayerParameter& message) {
  if (message.has_psroi_pooling_param()) return message.psroi_pooling_param().spatial_scale();
  if (message.has_roi_align_param()) return message.roi_align_param().spatial_scale();
  if (message.has_region_pooling_param()) return message.region_pooling_param().spatial_scale();
  return message.roi_pooling_param().spatial_scale();
}

// A layer of type Python that has a native version.
bool is_native(const Node& node, const char* name) {
  const LayerParameter& message = node.message;
  return message.type() == "Python" && message.python_param().layer() == name &&
         !python_object(*node.layer);
}

// Pixels between the places of a map with anchors.
double stride_of(const Node& node) {
  if (node.layer->type() == "Proposal") return node.layer->message().proposal_param().feat_stride();
  return ParamStr(node.message).number("feat_stride", 16);
}

// For Faster R-CNN: height, width and the resize factor of the image.
std::vector<float> image_sizes(const Graph& graph, const Node& node) {
  const Shape &map = graph.values[node.bottoms[0]].shape,
              &sizes = graph.values[node.bottoms[2]].shape;
  std::vector<float> numbers(static_cast<size_t>(sizes.count()), 1);
  const auto columns = static_cast<size_t>(sizes.count(1));
  for (size_t i = 0; i + 1 < numbers.size() && columns > 1; i += columns) {
    for (size_t axis = 0; axis < 2; ++axis)
      numbers[i + axis] = static_cast<float>(static_cast<double>(map[2 + axis]) * stride_of(node));
  }
  return numbers;
}

// How this node reads bottom `j`; no columns: not as boxes.
BoxRows rows_at(const Graph& graph, const Node& node, size_t j) {
  const LayerParameter& message = node.message;
  const int regions = facts_of(message.type()).regions;
  const Shape& first = graph.values[node.bottoms[0]].shape;
  if (regions > 0 && j == 1) {
    const double scale = scale_of(message);
    return {false,
            false,
            false,
            regions,
            first[0],
            0,
            static_cast<double>(first[2]) / scale,
            static_cast<double>(first[3]) / scale};
  }
  // Class 1, which is there however many there are.
  if (j == 1 && is_native(node, "AnchorTargetLayer"))
    return {false, false, true, 5, 1, 2, first[2] * stride_of(node), first[3] * stride_of(node)};
  if (message.type() == "ProposalTarget") {
    const ProposalTargetParameter& p = message.proposal_target_param();
    const auto height = static_cast<double>(p.img_height()),
               width = static_cast<double>(p.img_width());
    return {false, false, false, j == 0 ? 5 : 7, p.num_img_per_batch(), p.cls_num(), height, width};
  }
  if (message.has_multibox_loss_param() && j == 3)
    return {true, false, false, 8, first[0], message.multibox_loss_param().num_classes()};
  if (message.has_detection_evaluate_param() && j == 1)
    return {true, false, false, 8, 1, message.detection_evaluate_param().num_classes()};
  if (j == 1 && message.type() == "Yolov3")
    return {false, true, false, 5, first[0], message.yolov3_param().num_class()};
  if (j == 1 && message.type() == "RegionLoss")
    return {false, true, false, 5, first[0], message.region_loss_param().num_class()};
  return {};
}

// For DetectNet: a row with the number of boxes before those of each image, all of one trained
// class.
std::vector<float> random_lists(const Graph& graph, const Node& node, const Random& random) {
  constexpr int64_t kNumbers = 16;
  const auto& classes = node.message.detectnet_groundtruth_param().object_class();
  const Shape &image = graph.values[node.bottoms[0]].shape,
              &lists = graph.values[node.bottoms[1]].shape;
  const int64_t rows = lists.count(1) / kNumbers;
  std::vector<float> numbers(lists.count(), 0);
  for (int64_t i = 0; i < lists.count() / kNumbers; ++i) {
    float* row = numbers.data() + i * kNumbers;
    if (i % rows == 0) {
      row[0] = static_cast<float>(rows - 1);
      row[1] = kNumbers;
      continue;
    }
    for (int axis = 0; axis < 2; ++axis) {
      const auto extent = static_cast<float>(image[3 - axis]);
      row[axis] = 0.7f * random.uniform(i * kNumbers + axis) * extent;
      row[2 + axis] = (0.1f + 0.2f * random.uniform(i * kNumbers + 2 + axis)) * extent;
    }
    row[5] = classes.empty() ? 1 : static_cast<float>(classes[0].src());
  }
  return numbers;
}

}  // namespace

std::vector<float> random_boxes(const Graph& graph, int value, const Random& random) {
  BoxRows rows;
  for (const Node& node : graph.nodes) {
    if (node.message.type() == "DetectNetTransformation" && node.bottoms[1] == value)
      return random_lists(graph, node, random);
    const bool has_sizes = node.layer->type() == "Proposal" || is_native(node, "AnchorTargetLayer");
    if (has_sizes && node.bottoms[2] == value) return image_sizes(graph, node);
    for (size_t j = 0; j < node.bottoms.size() && rows.columns == 0; ++j) {
      if (node.bottoms[j] == value) rows = rows_at(graph, node, j);
    }
  }
  const int64_t count = graph.values[value].shape.count();
  if (rows.columns == 0 || count % rows.columns != 0) return {};
  std::vector<float> numbers(count, 0);
  const int64_t boxes = count / rows.columns;
  for (int64_t i = 0; i < boxes; ++i) {
    float* row = numbers.data() + i * rows.columns;
    const auto uniform = [&](int64_t k) { return random.uniform(i * rows.columns + k); };
    if (rows.centered) {
      row[0] = static_cast<float>(random.word(i) % std::max<int64_t>(rows.classes, 1));
      for (int64_t k = 1; k < 5; ++k)
        row[k] = (k < 3 ? 0.2f : 0.1f) + (k < 3 ? 0.6f : 0.3f) * uniform(k);
      continue;
    }
    row[0] = static_cast<float>(i * rows.images / boxes);
    const int64_t corner = rows.objects ? 3 : rows.class_last ? 0 : 1;
    const auto label =
        static_cast<float>(1 + random.word(i) % std::max<int64_t>(rows.classes - 1, 1));
    if (rows.objects) row[1] = label;
    if (rows.columns == 7) row[5] = label;
    if (rows.class_last) row[4] = label;
    for (int64_t axis = 0; axis < 2; ++axis) {
      const double maximum = axis == 0 ? rows.width : rows.height;
      const double from = 0.7 * uniform(axis) * maximum,
                   size = (0.1 + 0.2 * uniform(2 + axis)) * maximum;
      row[corner + axis] = static_cast<float>(from);
      row[corner + 2 + axis] = static_cast<float>(from + size);
      if (rows.columns != 9) continue;
      row[5 + axis] = static_cast<float>(from + size / 4);
      row[7 + axis] = static_cast<float>(from + 3 * size / 4);
    }
  }
  return numbers;
}

}  // namespace crema

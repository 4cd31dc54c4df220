// Layers for detection.
#include "exchange/onnx/layers/boxes_export.h"
#include "proto/params/forks_detection.pb.h"

namespace crema {
namespace {

void write_prior_box(LayerExport& layer) { layer.write_constant_tops(); }
EXPORT_LAYER(PriorBox, write_prior_box);
EXPORT_LAYER(PriorBoxClustered, write_prior_box);

// The boxes of all images, (images, lists, priors, 4), as kernels/detection/boxes.h decodes them. A
// list has the boxes of one class, or of all.
class DecodedBoxes {
 public:
  explicit DecodedBoxes(LayerExport& layer)
      : layer_(layer), p_(layer.message().detection_output_param()) {
    numbers_ = p_.normalized() ? 4 : 5;
    lists_ = p_.share_location() ? 1 : p_.num_classes();
    const OnnxValue& codes = layer.bottom_value();
    if (layer.bottom_value(2).of_batch[0])
      layer.require_fixed_batch("all images have the same priors");
    grows_ = codes.varies(1);
    if (grows_ && codes.of_batch[0]) layer.require_fixed_batch("the number of boxes depends on it");
    images_ = codes.of_batch[0] ? -1 : codes.shape[0];
    count_ = grows_ ? -1 : layer.bottom_shape(2)[2] / numbers_;
  }
  // -1 where it depends on data, or the batch.
  int64_t count() const { return count_; }
  int64_t images() const { return images_; }
  int64_t lists() const { return lists_; }

  std::string write() {
    const std::string code = coded();
    std::string priors = layer_.slice(layer_.bottom(2), 1, 0, 1);
    priors = layer_.reshape(priors, {1, count_, 1, numbers_});
    if (numbers_ == 5) priors = layer_.slice(priors, 3, 1, 5);
    if (!p_.normalized()) {
      const auto width = static_cast<float>(p_.input_width());
      const auto height = static_cast<float>(p_.input_height());
      priors = op("Div", priors, layer_.floats({4}, {width, height, width, height}));
    }
    std::string boxes = decoded(priors, code);
    if (p_.clip()) boxes = layer_.clip(boxes, 0, 1);
    return layer_.node("Transpose", {boxes}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }

 private:
  std::string op(const char* name, const std::string& a, const std::string& b) {
    return layer_.node(name, {a, b});
  }
  // The first or the second corner.
  std::string part(const std::string& boxes, int64_t corner) {
    return layer_.slice(boxes, 3, 2 * corner, 2 * corner + 2);
  }
  std::string coded() {
    const std::string code = layer_.reshape(layer_.bottom(0), {images_, count_, lists_, 4});
    if (p_.variance_encoded_in_target()) return code;
    std::string variances = layer_.slice(layer_.bottom(2), 1, 1, 2);
    variances = layer_.reshape(variances, {-1});
    if (numbers_ == 5) {
      if (grows_) layer_.refuse("the number of priors depends on data", "write normalized: true");
      variances = layer_.slice(variances, 0, 0, 4 * count_);
    }
    return op("Mul", code, layer_.reshape(variances, {1, count_, 1, 4}));
  }
  std::string decoded(const std::string& priors, const std::string& code) {
    const std::string first = part(priors, 0), second = part(priors, 1);
    if (p_.code_type() == PriorBoxParameter::CORNER) return op("Add", priors, code);
    const std::string size = op("Sub", second, first);
    if (p_.code_type() == PriorBoxParameter::CORNER_SIZE)
      return op("Add", priors,
                op("Mul", code, layer_.node("Concat", {size, size}, {{"axis", int64_t{3}}})));
    const std::string half = layer_.scalar(0.5f);
    const std::string centre =
        op("Add", op("Mul", op("Add", first, second), half), op("Mul", part(code, 0), size));
    const std::string reach = op("Mul", op("Mul", layer_.node("Exp", {part(code, 1)}), size), half);
    return layer_.node("Concat", {op("Sub", centre, reach), op("Add", centre, reach)},
                       {{"axis", int64_t{3}}});
  }

  LayerExport& layer_;
  const DetectionOutputParameter& p_;
  int64_t numbers_, lists_, images_, count_;
  bool grows_ = false;
};

// Kept boxes as rows of image, list and box, and their scores.
struct FoundBoxes {
  std::string rows, scores;
};

// 1 at the `count` largest values along the last axis of x, whose length may be less if fill_up.
// Of equal values some may be among the largest and others not. (OpenCV gathers no booleans.)
std::string marks_of_largest(LayerExport& layer, std::string x, int axes, int64_t count,
                             bool fill_up) {
  const int axis = axes - 1;
  if (fill_up) {
    std::vector<int64_t> room(static_cast<size_t>(2 * axes));
    room.back() = count;
    x = layer.pad(x, room, kNeverFound);
  }
  const LargestValues largest = largest_values(layer, x, axes, axis, count, false);
  const auto filled_like = [&](const std::string& values, float value) {
    return layer.node("Expand", {layer.scalar(value), layer.node("Shape", {values})});
  };
  const std::string marks = layer.node(
      "ScatterElements", {filled_like(x, 0), largest.places, filled_like(largest.places, 1)},
      {{"axis", int64_t{axis}}});
  return fill_up ? layer.slice(marks, axis, 0, -count) : marks;
}

// Keeps the `most` best of each image.
FoundBoxes best_of_images(LayerExport& layer, const FoundBoxes& found, const std::string& scores,
                          int64_t images, int64_t most) {
  const std::string shape = layer.node("Shape", {scores});
  const std::string none = layer.node("Expand", {layer.scalar(kNeverFound), shape});
  std::string kept = layer.node("ScatterND", {none, found.rows, found.scores});
  kept = layer.reshape(kept,
                       images > 0 ? std::vector<int64_t>{images, -1} : std::vector<int64_t>{0, -1});
  const std::string best =
      layer.node("Reshape", {marks_of_largest(layer, kept, 2, most, true), shape});
  const std::string at =
      layer.reshape(layer.node("NonZero", {at_indices(layer, best, found.rows)}), {-1});
  return {layer.node("Gather", {found.rows, at}, {{"axis", int64_t{0}}}),
          layer.node("Gather", {found.scores, at}, {{"axis", int64_t{0}}})};
}

void write_detection_output(LayerExport& layer) {
  const DetectionOutputParameter& p = layer.message().detection_output_param();
  const NonMaximumSuppressionParameter& nms = p.nms_param();
  if (nms.eta() < 1) layer.refuse("eta changes the threshold from box to box", "write eta: 1");
  DecodedBoxes decoded(layer);
  const int64_t images = decoded.images(), count = decoded.count(), classes = p.num_classes();
  const bool own_boxes = decoded.lists() > 1;
  if (images < 0 && own_boxes)
    layer.require_fixed_batch("its boxes differ from image to image and class to class");
  std::string boxes = decoded.write();
  if (!own_boxes) boxes = layer.reshape(boxes, {images, count, 4});

  std::string scores = layer.reshape(layer.bottom(1), {images, count, classes});
  scores = layer.node("Transpose", {scores}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  if (p.background_label_id() >= 0 && p.background_label_id() < classes) {
    std::vector<float> penalty(classes);
    penalty[p.background_label_id()] = 2 * kNeverFound;
    scores = layer.node("Add", {scores, layer.floats({1, classes, 1}, penalty)});
  }
  const int64_t all = layer.bottom_shape(1).count(1) / classes;
  const int64_t candidates =
      nms.has_top_k() && nms.top_k() >= 0 && nms.top_k() < all ? std::max(nms.top_k(), 1) : all;
  if (candidates < all) {
    const std::string best = marks_of_largest(layer, scores, 3, candidates, count < 0);
    scores = layer.node("Where", {layer.node("Greater", {best, layer.scalar(0.5f)}), scores,
                                  layer.scalar(kNeverFound)});
  }
  const float threshold = p.has_confidence_threshold()
                              ? std::max(p.confidence_threshold(), kNeverFound / 2)
                              : kNeverFound / 2;
  FoundBoxes found;
  if (own_boxes) {  // the operator gets each class as an image
    const std::string lists = layer.reshape(boxes, {images * classes, count, 4});
    const std::string of_lists = layer.reshape(scores, {images * classes, 1, count});
    const std::string rows =
        suppress_boxes(layer, lists, of_lists, candidates, nms.nms_threshold(), threshold);
    const std::string list = columns_of(layer, rows, {0}), number = layer.ints({classes});
    found.rows = layer.node("Concat",
                            {layer.node("Div", {list, number}), layer.node("Mod", {list, number}),
                             columns_of(layer, rows, {2})},
                            {{"axis", int64_t{1}}});
  } else {
    found.rows = suppress_boxes(layer, boxes, scores, candidates, nms.nms_threshold(), threshold);
  }
  found.scores = at_indices(layer, scores, found.rows);
  if (p.keep_top_k() > 0) found = best_of_images(layer, found, scores, images, p.keep_top_k());
  const std::string corners =
      at_indices(layer, boxes, own_boxes ? found.rows : columns_of(layer, found.rows, {0, 2}));
  write_detection_rows(layer, columns_of(layer, found.rows, {0, 1}), found.scores, corners);
}
EXPORT_LAYER(DetectionOutput, write_detection_output);

}  // namespace
}  // namespace crema

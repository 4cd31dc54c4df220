// Layers for detection.
#include "exchange/onnx/layer_export.h"
#include "proto/params/forks_detection.pb.h"

namespace crema {
namespace {

void write_prior_box(LayerExport& layer) { layer.write_constant_tops(); }
EXPORT_LAYER(PriorBox, write_prior_box);
EXPORT_LAYER(PriorBoxClustered, write_prior_box);

// RoIs as rows of five numbers.
std::string region_rows(LayerExport& layer) {
  if (layer.bottom_shape(1).axes() == 2) return layer.bottom(1);
  return layer.reshape(layer.bottom(1), {-1, 5});
}

void write_roi_pooling(LayerExport& layer) {
  const ROIPoolingParameter& p = layer.message().roi_pooling_param();
  if (p.pad_ratio() != 0) layer.refuse("pad_ratio widens the RoIs", "write pad_ratio: 0");
  layer.write("MaxRoiPool", {layer.bottom(0), region_rows(layer)},
              {{"pooled_shape", std::vector<int64_t>{p.pooled_h(), p.pooled_w()}},
               {"spatial_scale", p.spatial_scale()}});
}
EXPORT_LAYER(ROIPooling, write_roi_pooling);

void write_roi_align(LayerExport& layer) {
  const ROIAlignParameter& p = layer.message().roi_align_param();
  if (!layer.message().has_roi_align_param() || p.pad_ratio() != 0) {
    layer.refuse("only Mask R-CNN's form, without pad_ratio, is an operator",
                 "write roi_align_param with pad_ratio: 0");
  }
  const std::string rows = region_rows(layer);
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

constexpr float kNever = -1e9f;  // a score below all

// The boxes of all priors, (P, 4), as kernels/detection/boxes.h decodes them.
class DecodedBoxes {
 public:
  explicit DecodedBoxes(LayerExport& layer)
      : layer_(layer), p_(layer.message().detection_output_param()) {
    numbers_ = p_.normalized() ? 4 : 5;
    count_ = layer.bottom_shape(2)[2] / numbers_;
  }
  int64_t count() const { return count_; }

  std::string write() {
    const std::string code = coded();
    std::string priors = layer_.slice(layer_.bottom(2), 1, 0, 1);
    priors = layer_.reshape(priors, {count_, numbers_});
    if (numbers_ == 5) priors = layer_.slice(priors, 1, 1, 5);
    if (!p_.normalized()) {
      const auto width = static_cast<float>(p_.input_width());
      const auto height = static_cast<float>(p_.input_height());
      priors = op("Div", priors, layer_.floats({4}, {width, height, width, height}));
    }
    const std::string first = part(priors, 0), second = part(priors, 1);
    if (p_.code_type() == PriorBoxParameter::CORNER) return op("Add", priors, code);
    const std::string size = op("Sub", second, first);
    if (p_.code_type() == PriorBoxParameter::CORNER_SIZE)
      return op("Add", priors,
                op("Mul", code, layer_.node("Concat", {size, size}, {{"axis", int64_t{1}}})));
    const std::string half = layer_.scalar(0.5f);
    const std::string centre =
        op("Add", op("Mul", op("Add", first, second), half), op("Mul", part(code, 0), size));
    const std::string reach = op("Mul", op("Mul", layer_.node("Exp", {part(code, 1)}), size), half);
    return layer_.node("Concat", {op("Sub", centre, reach), op("Add", centre, reach)},
                       {{"axis", int64_t{1}}});
  }

 private:
  std::string op(const char* name, const std::string& a, const std::string& b) {
    return layer_.node(name, {a, b});
  }
  // The first or the second corner.
  std::string part(const std::string& boxes, int64_t corner) {
    return layer_.slice(boxes, 1, 2 * corner, 2 * corner + 2);
  }
  std::string coded() {
    const std::string code = layer_.reshape(layer_.bottom(0), {count_, 4});
    if (p_.variance_encoded_in_target()) return code;
    std::string variances = layer_.slice(layer_.bottom(2), 1, 1, 2);
    variances = layer_.reshape(variances, {-1});
    if (numbers_ == 5) variances = layer_.slice(variances, 0, 0, 4 * count_);
    return op("Mul", code, layer_.reshape(variances, {count_, 4}));
  }

  LayerExport& layer_;
  const DetectionOutputParameter& p_;
  int64_t numbers_, count_;
};

// Keeps the `count` largest values along the axis, and values equal to the last of them; the others
// become kNever.
std::string only_largest(LayerExport& layer, const std::string& scores, int axis, int64_t count) {
  const std::string values = layer.graph().unique(layer.name("best"));
  const std::string places = layer.graph().unique(layer.name("places"));
  layer.graph().add("TopK", {scores, layer.ints({count})}, {values, places},
                    {{"axis", int64_t{axis}}, {"largest", int64_t{1}}, {"sorted", int64_t{1}}});
  const std::string bound = layer.slice(values, axis, count - 1, count);
  return layer.node("Where", {layer.node("Less", {scores, bound}), layer.scalar(kNever), scores});
}

void write_detection_output(LayerExport& layer) {
  const DetectionOutputParameter& p = layer.message().detection_output_param();
  const NonMaximumSuppressionParameter& nms = p.nms_param();
  layer.require_fixed_batch("it finds the objects of one image");
  if (layer.bottom_shape()[0] != 1)
    layer.refuse("it finds the objects of several images", "export with -batch 1");
  if (!p.share_location())
    layer.refuse("its boxes differ from class to class", "write share_location: true");
  if (nms.eta() < 1) layer.refuse("eta changes the threshold from box to box", "write eta: 1");
  DecodedBoxes decoded(layer);
  const int64_t count = decoded.count(), classes = p.num_classes();
  const std::string boxes = decoded.write();

  std::string scores = layer.reshape(layer.bottom(1), {1, count, classes});
  scores = layer.node("Transpose", {scores}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  if (p.background_label_id() >= 0 && p.background_label_id() < classes) {
    std::vector<float> penalty(classes);
    penalty[p.background_label_id()] = 2 * kNever;
    scores = layer.node("Add", {scores, layer.floats({1, classes, 1}, penalty)});
  }
  const int64_t candidates =
      nms.has_top_k() && nms.top_k() >= 0 && nms.top_k() < count ? std::max(nms.top_k(), 1) : count;
  if (candidates < count) scores = only_largest(layer, scores, 2, candidates);
  const float threshold =
      p.has_confidence_threshold() ? std::max(p.confidence_threshold(), kNever / 2) : kNever / 2;
  // (found, 3): image, class, box; class after class, the best first.
  std::string found =
      layer.node("NonMaxSuppression",
                 {layer.reshape(boxes, {1, count, 4}), scores, layer.ints({candidates}),
                  layer.floats({1}, {nms.nms_threshold()}), layer.floats({1}, {threshold})});
  const auto column = [&](int64_t number) {
    return layer.reshape(layer.slice(found, 1, number, number + 1), {-1});
  };
  const std::string all = layer.reshape(scores, {-1});
  const auto scores_of_found = [&] {
    const std::string row = layer.node("Mul", {column(1), layer.index(count)});
    return layer.node("Gather", {all, layer.node("Add", {row, column(2)})}, {{"axis", int64_t{0}}});
  };
  std::string score = scores_of_found();
  if (p.keep_top_k() > 0) {
    // TopK needs as many values as it takes.
    const int64_t most = p.keep_top_k();
    const std::string padded =
        layer.node("Concat", {score, layer.floats({most}, std::vector<float>(most, kNever))},
                   {{"axis", int64_t{0}}});
    const std::string values = layer.graph().unique(layer.name("best"));
    const std::string places = layer.graph().unique(layer.name("places"));
    layer.graph().add("TopK", {padded, layer.ints({most})}, {values, places},
                      {{"axis", int64_t{0}}, {"largest", int64_t{1}}, {"sorted", int64_t{1}}});
    const std::string worse = layer.node("Less", {score, layer.slice(values, 0, most - 1, most)});
    const std::string kept =
        layer.reshape(layer.node("NonZero", {layer.node("Not", {worse})}), {-1});
    found = layer.node("Gather", {found, kept}, {{"axis", int64_t{0}}});
    score = layer.node("Gather", {score, kept}, {{"axis", int64_t{0}}});
  }
  const std::string image_and_class =
      layer.cast(layer.slice(found, 1, 0, 2), onnx::TensorProto::FLOAT);
  const std::string corners = layer.node("Gather", {boxes, column(2)}, {{"axis", int64_t{0}}});
  const std::string rows = layer.node(
      "Concat", {image_and_class, layer.reshape(score, {-1, 1}), corners}, {{"axis", int64_t{1}}});
  layer.any_extent(0, 2);
  layer.reshape(rows, {1, 1, -1, 7}, true);
}
EXPORT_LAYER(DetectionOutput, write_detection_output);

}  // namespace
}  // namespace crema

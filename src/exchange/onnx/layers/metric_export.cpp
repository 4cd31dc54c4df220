// Layers of forks that learn faces and distances.
#include "exchange/onnx/layer_export.h"
#include "exchange/weight_matrices.h"
#include "proto/params/forks_face.pb.h"

namespace crema {
namespace {

void write_channel_scale(LayerExport& layer) {
  const ChannelScaleParameter& p = layer.message().channel_scale_param();
  if (!p.do_forward()) return layer.write("Identity", {layer.bottom()});
  if (p.global_scale()) {
    const std::string factor =
        layer.clip(layer.parameter(0), p.min_global_scale(), p.max_global_scale());
    return layer.write("Mul", {layer.bottom(), factor});
  }
  std::vector<int64_t> extents = layer.extents_of(layer.bottom_value());
  extents[1] = 1;
  layer.write("Mul", {layer.bottom(), layer.reshape(layer.bottom(1), extents)});
}
EXPORT_LAYER(ChannelScale, write_channel_scale);

// The weights as they are after a forward pass: with `normalize` each row has length 1.
std::string distance_weights(LayerExport& layer, int64_t outputs, int64_t inputs, bool normalize) {
  if (layer.bottoms() > 1) return layer.reshape(layer.bottom(1), {outputs, inputs});
  std::vector<float> weights = layer.parameter_values(0);
  if (normalize) weights = unit_rows(std::move(weights), outputs);
  return layer.floats({outputs, inputs}, std::move(weights));
}

void write_inner_distance(LayerExport& layer) {
  const InnerDistanceParameter& p = layer.message().inner_distance_param();
  const int64_t inputs = layer.bottom_shape().count(layer.bottom_shape().canonical_axis(p.axis()));
  const int64_t outputs = p.num_output();
  const std::string w = distance_weights(layer, outputs, inputs, p.normalize());
  const std::string x = layer.reshape(layer.bottom(), {-1, inputs});
  std::string y;
  if (p.distance_type() == "L1") {
    const std::string d = layer.node("Sub", {layer.unsqueeze(x, {1}), layer.unsqueeze(w, {0})});
    y = layer.reduce("ReduceSum", layer.node("Abs", {d}), {2}, false);
  } else {
    const auto squares = [&](const std::string& rows, bool keep) {
      return layer.reduce("ReduceSum", layer.node("Mul", {rows, rows}), {1}, keep);
    };
    const std::string product = layer.node(
        "MatMul", {x, layer.node("Transpose", {w}, {{"perm", std::vector<int64_t>{1, 0}}})});
    const std::string both = layer.node("Add", {squares(x, true), squares(w, false)});
    y = layer.node("Relu",
                   {layer.node("Sub", {both, layer.node("Mul", {product, layer.scalar(2)})})});
  }
  if (layer.bottoms() > 2) y = layer.node("Add", {y, layer.reshape(layer.bottom(2), {outputs})});
  if (layer.bottoms() == 1 && p.bias_term()) y = layer.node("Add", {y, layer.parameter(1)});
  layer.reshape_to_top(y);
}
EXPORT_LAYER(InnerDistance, write_inner_distance);

// In inference nothing is changed, unless the file asks for it.
void write_label_specific(LayerExport& layer) {
  const LayerParameter& message = layer.message();
  if (message.label_specific_add_param().transform_test() ||
      message.label_specific_rescale_param().rescale_test() ||
      message.label_specific_margin_param().margin_on_test() || layer.tops() > 1) {
    layer.refuse("it changes the score of a label that is known in training only",
                 "leave out the change in testing, and further tops");
  }
  layer.write("Identity", {layer.bottom()});
}
EXPORT_LAYER(LabelSpecificAdd, write_label_specific);
EXPORT_LAYER(LabelSpecificRescale, write_label_specific);
EXPORT_LAYER(LabelSpecificMargin, write_label_specific);

// Scores against the vectors that were stored in training.
void write_matching(LayerExport& layer) {
  const int64_t rows = layer.parameter_shape(0)[0];
  const std::string x = layer.reshape(layer.bottom(), {-1, layer.parameter_shape(0).count(1)});
  layer.write("MatMul", {x, layer.transposed(0)});
  if (layer.tops() == 1) return;
  const std::string label = layer.reshape(layer.bottom(1), {-1});
  const std::string known =
      layer.node("And", {layer.node("Greater", {label, layer.scalar(-1)}),
                         layer.node("Less", {label, layer.scalar(static_cast<float>(rows))})});
  const std::string whole =
      layer.cast(layer.cast(label, onnx::TensorProto::INT64), onnx::TensorProto::FLOAT);
  layer.reshape_to_top(layer.node("Where", {known, whole, layer.scalar(-1)}), 1);
}
EXPORT_LAYER(LabeledMatching, write_matching);
EXPORT_LAYER(UnlabeledMatching, write_matching);

}  // namespace
}  // namespace crema

// Layers for sequences.
#include <cmath>

#include "exchange/onnx/layer_export.h"
#include "proto/params/attention.pb.h"
#include "proto/params/dense.pb.h"

namespace crema {
namespace {

void write_embed(LayerExport& layer) {
  const std::string index = layer.cast(layer.bottom(), onnx::TensorProto::INT64);
  const std::vector<std::string> inputs = {layer.parameter(0), index};
  if (layer.parameters() == 1) return layer.write("Gather", inputs, {{"axis", int64_t{0}}});
  const std::string rows = layer.node("Gather", inputs, {{"axis", int64_t{0}}});
  layer.write("Add", {rows, layer.parameter(1)});
}
EXPORT_LAYER(Embed, write_embed);

void write_attention(LayerExport& layer) {
  const MultiHeadAttentionParameter& p = layer.message().multi_head_attention_param();
  const int64_t heads = p.num_heads(), channels = layer.top_shape()[2], each = channels / heads;
  const bool bias = layer.parameters() > 4;
  const auto project = [&](int bottom, int weights, int shift, const std::vector<int64_t>& order) {
    const int source = bottom < layer.bottoms() ? bottom : 0;
    std::string y = layer.node("MatMul", {layer.bottom(source), layer.transposed(weights)});
    if (bias && shift >= 0) y = layer.node("Add", {y, layer.parameter(shift)});
    std::vector<int64_t> extents = layer.extents_of(layer.bottom_value(source));
    const std::string split = layer.reshape(y, {extents[0], extents[1], heads, each});
    return layer.node("Transpose", {split}, {{"perm", order}});
  };
  const std::vector<int64_t> rows = {0, 2, 1, 3}, columns = {0, 2, 3, 1};
  const int of_values = layer.bottoms() > 2 ? 2 : layer.bottoms() > 1 ? 1 : 0;
  const int of_keys = layer.bottoms() > 1 ? 1 : 0;
  const std::string queries = project(0, 0, 4, rows);
  const std::string keys = project(of_keys, 1, -1, columns);
  const std::string values = project(of_values, 2, 5, rows);
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(each)));
  std::string scores =
      layer.node("Mul", {layer.node("MatMul", {queries, keys}), layer.scalar(factor)});
  if (p.causal()) {
    const int64_t t = layer.bottom_shape(0)[1], s = layer.bottom_shape(of_keys)[1];
    std::vector<float> mask(t * s);
    for (int64_t i = 0; i < t; ++i)
      for (int64_t j = i + 1; j < s; ++j) mask[i * s + j] = -1e30f;
    scores = layer.node("Add", {scores, layer.floats({t, s}, mask)});
  }
  const std::string weights = layer.node("Softmax", {scores}, {{"axis", int64_t{3}}});
  const std::string mixed =
      layer.node("Transpose", {layer.node("MatMul", {weights, values})}, {{"perm", rows}});
  std::vector<int64_t> extents = layer.extents_of(layer.top_value());
  const std::string joined = layer.reshape(mixed, {extents[0], extents[1], channels});
  const std::string y = layer.node("MatMul", {joined, layer.transposed(3)});
  if (!bias) return layer.write("Identity", {y});
  layer.write("Add", {y, layer.parameter(6)});
}
EXPORT_LAYER(MultiHeadAttention, write_attention);

void write_mat_mul(LayerExport& layer) {
  layer.write("MatMul", {layer.bottom(0), layer.bottom(1)});
}
EXPORT_LAYER(MatMul, write_mat_mul);

}  // namespace
}  // namespace crema

#include "exchange/quantize/quantized_node.h"

#include "layers/vision/layer_quantization.h"
#include "proto/layer.pb.h"
#include "proto/params/dense.pb.h"

namespace crema {
namespace {

bool has_rows(const Node& node) {
  if (facts_of(node.message.type()).kind != LayerKind::dense) return true;
  const InnerProductParameter& p = node.message.inner_product_param();
  return node.bottoms.size() == 1 && !p.transpose() && !p.normalize();
}

}  // namespace

bool is_quantizable(const Node& node) {
  return facts_of(node.message.type()).quantizes && !node.parameters.empty() && has_rows(node);
}

std::optional<LinearQuantization> quantization_of(const Node& node, const Graph& graph) {
  if (!is_quantizable(node)) return std::nullopt;
  return layer_quantization(node.message.quantization_param(),
                            graph.parameters[node.parameters[0]].shape[0]);
}

}  // namespace crema

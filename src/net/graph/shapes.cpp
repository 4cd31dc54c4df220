#include "net/graph/shapes.h"

#include "net/graph/graph_builder.h"
#include "net/graph/graph_parameters.h"

namespace crema {

void check_tops(const LayerParameter& message, const std::vector<Shape>& shapes) {
  for (int j = 0; j < static_cast<int>(shapes.size()); ++j)
    check_extents(j < message.top_size() ? cat("top \"", message.top(j), "\"") : "the top",
                  shapes[j]);
}

void infer_shapes(Graph& graph) { infer_shapes(graph, 0, graph.net.layer_size() - 1); }

void infer_shapes(Graph& graph, int first, int last) {
  std::vector<bool> changed(graph.values.size(), false);
  for (Node& node : graph.nodes) {
    std::vector<Shape> bottoms;
    for (int value : node.bottoms) {
      bottoms.push_back(graph.values[value].shape);
      node.stale = node.stale || changed[value];
    }
    const bool runs = node.members.back() >= first && node.members.back() <= last;
    if (!runs && node.message.type() != "Input") {
      // Versions of one blob, as in-place layers write them, have one shape.
      for (const int top : node.tops) {
        for (const int bottom : node.bottoms) {
          if (!changed[bottom] || graph.values[bottom].blob != graph.values[top].blob) continue;
          graph.values[top].shape = graph.values[bottom].shape;
          changed[top] = true;
        }
      }
      continue;
    }
    at_layer(node.place, [&] {
      const Inference inference = node.layer->infer(bottoms);
      check_tops(node.message, inference.tops);
      for (size_t j = 0; j < node.tops.size(); ++j) {
        Shape& shape = graph.values[node.tops[j]].shape;
        changed[node.tops[j]] = shape != inference.tops[j];
        shape = inference.tops[j];
      }
    });
    node.stale = false;
  }
}

}  // namespace crema

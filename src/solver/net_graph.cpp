#include "solver/net_graph.h"

#include <set>

#include "base/strings.h"

namespace crema {
namespace {

// Longer texts of a layer are cut: a reader wants to see its fields, not the numbers of a long list.
constexpr size_t kLongestText = 1000;

std::string unique_name(std::string name, std::set<std::string>& taken) {
  if (name.empty()) name = "layer";
  std::string unique = name;
  for (int i = 2; !taken.insert(unique).second; ++i) unique = cat(name, "_", i);
  return unique;
}

}  // namespace

event::NetGraph net_graph(const Graph& graph) {
  event::NetGraph shown;
  std::set<std::string> taken;
  for (const Node& node : graph.nodes) {
    event::NetGraph::Node layer;
    layer.name = unique_name(node.message.name(), taken);
    layer.type = node.message.type();
    for (const int bottom : node.bottoms)
      layer.inputs.push_back({graph.values[bottom].producer, graph.values[bottom].top});
    for (const int top : node.tops) {
      const Shape& shape = graph.values[top].shape;
      layer.shapes.emplace_back();
      for (int axis = 0; axis < shape.axes(); ++axis) layer.shapes.back().push_back(shape[axis]);
    }
    std::vector<std::string> parameters;
    for (const int id : node.parameters) parameters.push_back(graph.parameters[id].shape.brief());
    if (!parameters.empty()) layer.notes.emplace_back("parameters", join(parameters, ", "));
    std::string text = node.message.ShortDebugString();
    if (text.size() > kLongestText) text = text.substr(0, kLongestText) + " ...";
    layer.notes.emplace_back("layer", text);
    shown.nodes.push_back(std::move(layer));
  }
  return shown;
}

}  // namespace crema

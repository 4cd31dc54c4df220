#include "tools/pages/drawing/net_boxes.h"

#include <map>

#include "base/strings.h"
#include "net/plan/memory_use.h"
#include "net/plan/plan.h"
#include "tools/pages/drawing/net_grouping.h"

namespace crema {

NetBoxes net_boxes(const NetParameter& net, bool training) {
  NetBoxes result;
  result.name = net.name();
  result.training = training;
  NetGrouping boxes(&result);
  std::map<std::string, int> latest;
  for (const LayerParameter& layer : net.layer()) {
    DrawnLayer drawn{&layer, {}, {}, static_cast<int>(boxes.layers.size())};
    for (const std::string& bottom : layer.bottom()) {
      const auto at = latest.find(bottom);
      if (at != latest.end()) drawn.reads.push_back(at->second);
    }
    for (const std::string& top : layer.top()) {
      latest[top] = static_cast<int>(boxes.values.size());
      drawn.writes.push_back(latest[top]);
      boxes.values.push_back({top});
    }
    boxes.layers.push_back(std::move(drawn));
  }
  boxes.make();
  result.layers = boxes.layers.size();
  return result;
}

NetBoxes net_boxes(const Graph& graph, const Plan& plan) {
  NetBoxes result;
  result.name = graph.net.name();
  result.training = plan.options.backward;
  result.has_shapes = true;
  std::vector<int> step_of(graph.net.layer_size(), -1);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    for (const int member : plan.nodes[i].members) step_of[member] = static_cast<int>(i);
  }
  NetGrouping boxes(&result);
  for (const Value& value : graph.values)
    boxes.values.push_back({value.blob, value.shape.axes() > 0 ? value.shape.brief() : "scalar"});
  std::vector<int> drawn_of(graph.net.layer_size(), -1);
  std::map<int, int> same_as;  // of the tops of Split layers that are no mere names
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    const LayerParameter& layer = graph.net.layer(i);
    const Graph::View& view = graph.views[i];
    const auto original = [&](int value) {
      const auto at = same_as.find(value);
      return at == same_as.end() ? value : at->second;
    };
    if (layer.type() == "Split") {
      for (const int top : view.tops) {
        if (top != view.bottoms[0]) same_as[top] = original(view.bottoms[0]);
      }
      continue;
    }
    drawn_of[i] = static_cast<int>(boxes.layers.size());
    DrawnLayer drawn{&layer, {}, view.tops, step_of[i]};
    for (const int bottom : view.bottoms) drawn.reads.push_back(original(bottom));
    boxes.layers.push_back(std::move(drawn));
  }
  boxes.make();
  result.layers = boxes.layers.size();

  const auto shapes_of = [&](const std::vector<int>& ids) {
    std::vector<Shape> shapes;
    for (const int id : ids) shapes.push_back(graph.values[id].shape);
    return shapes;
  };
  for (const Node& node : graph.nodes) {
    if (const int drawn = drawn_of[node.members[0]]; drawn >= 0) {
      result.boxes[boxes.box_of[drawn]].operations +=
          2 * node.layer->multiply_adds(shapes_of(node.bottoms), shapes_of(node.tops));
    }
  }
  for (int i = 0; i < graph.net.layer_size(); ++i) {
    if (drawn_of[i] < 0) continue;
    NetBox& box = result.boxes[boxes.box_of[drawn_of[i]]];
    for (const int index : graph.views[i].parameters) {
      const Parameter& parameter = graph.parameters[index];
      if (parameter.layer == graph.net.layer(i).name()) {
        box.parameters += parameter.shape.count();
      } else if (box.shares.find(parameter.name) == std::string::npos) {
        box.shares += (box.shares.empty() ? "" : ", ") + parameter.name;
      }
    }
  }
  const std::vector<LayerMemory> memory = memory_by_layer(plan, graph);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const std::vector<int>& members = plan.nodes[i].members;
    if (members.empty() || drawn_of[members[0]] < 0) continue;
    result.boxes[boxes.box_of[drawn_of[members[0]]]].bytes +=
        memory[i].blobs + memory[i].gradients + memory[i].parameters;
  }
  const MemoryKinds kinds = memory_of(plan);
  result.bytes = kinds.total();
  return result;
}

}  // namespace crema

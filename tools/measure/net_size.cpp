#include "tools/measure/net_size.h"

#include "base/strings.h"

namespace crema {

std::vector<int64_t> multiply_adds_of(const Graph& graph) {
  std::vector<int64_t> all(graph.net.layer_size());
  const auto shapes = [&](const std::vector<int>& values) {
    std::vector<Shape> shapes;
    for (const int value : values) shapes.push_back(graph.values[value].shape);
    return shapes;
  };
  for (const Node& node : graph.nodes)
    all[node.members[0]] += node.layer->multiply_adds(shapes(node.bottoms), shapes(node.tops));
  return all;
}

int64_t parameters_of(const Graph& graph) {
  int64_t count = 0;
  for (const Parameter& parameter : graph.parameters) count += parameter.shape.count();
  return count;
}

std::string grouped(int64_t number) {
  std::string digits = cat(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

}  // namespace crema

// GraphParameters: gives the layers of a graph their parameters. Layers may share some by name, and
// a prototxt may give their first values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "net/graph/graph.h"

namespace crema {

class GraphParameters {
 public:
  GraphParameters(Log& log, Graph& graph) : log_(log), graph_(graph) {}

  // Those that the layer has declared: indices into Graph::parameters.
  std::vector<int> add(const LayerParameter& message, const Layer& layer);

 private:
  void share(const LayerParameter& message, int k, const ParameterSpec& wanted,
             const Parameter& owner);

  Log& log_;
  Graph& graph_;
  std::map<std::string, int> named_;  // of shared parameters
};

// Error for an extent below 1, because kernels count and divide by extents, and for sizes in bytes
// whose sum may exceed 64 bits.
void check_extents(const std::string& what, const Shape& shape);

}  // namespace crema

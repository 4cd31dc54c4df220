#include "solver/fields/freeze.h"

#include "net/net.h"
#include "net/prototxt/prototxt.h"
#include "solver/fields/layer_patterns.h"

namespace crema {

std::function<bool(const std::string& layer)> frozen_layers(const SolverFile& file) {
  const LayerPatterns patterns(file, "freeze");
  if (patterns.empty()) return nullptr;
  return [patterns](const std::string& layer) { return patterns.match(layer); };
}

void check_frozen_layers(const SolverFile& file, const Net& net) {
  std::vector<std::string> layers;
  for (const Parameter& parameter : net.graph().parameters) {
    if (layers.empty() || layers.back() != parameter.layer) layers.push_back(parameter.layer);
  }
  LayerPatterns(file, "freeze").require_used(file, layers, "a layer with parameters");
}

}  // namespace crema

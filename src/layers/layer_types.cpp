#include "layers/layer_types.h"

#include "layers/layer.h"

namespace crema {

std::vector<std::string> layer_types() {
  std::vector<std::string> types = LayerRegistry::names();
  std::erase_if(types, [](const std::string& type) { return type.find('+') != std::string::npos; });
  return types;
}

}  // namespace crema

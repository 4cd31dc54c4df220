#include "layers/layer_types.h"

#include "layers/layer.h"

namespace crema {

std::vector<std::string> layer_types() { return LayerRegistry::names(); }

}  // namespace crema

#include "net/graph/taken_layers.h"

namespace crema {

std::vector<std::unique_ptr<LayerParameter>> take_layers(NetParameter* net) {
  const int count = net->layer_size();
  std::vector<LayerParameter*> all(static_cast<size_t>(count));
  net->mutable_layer()->ExtractSubrange(0, count, all.data());
  return {all.begin(), all.end()};
}

}  // namespace crema

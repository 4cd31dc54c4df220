// The types of layers of the program's own (custom_layer.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace crema {

class Layer;
class LayerParameter;

// null: no such type is registered.
std::unique_ptr<Layer> make_custom_layer(const LayerParameter& message, bool training);

// Those registered so far, sorted.
std::vector<std::string> custom_layer_types();

}  // namespace crema

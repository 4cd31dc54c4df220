// The opening comments of the layer files, collected at build time.
#pragma once

#include <string>
#include <vector>

namespace crema {

struct LayerDoc {
  std::string file;  // "convolution_layer.cpp"
  std::string text;
};

const std::vector<LayerDoc>& layer_docs();

}  // namespace crema

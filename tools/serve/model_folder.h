// The models in a folder: a net and its weights in each folder below it.
#pragma once

#include <string>
#include <vector>

namespace crema {

struct FoundModel {
  std::string name;  // its folder's
  std::string net, weights;
  std::string labels;  // "": none
};

// NAME/net.prototxt or NAME/deploy.prototxt with NAME/net.caffemodel and perhaps NAME/labels.txt, by name.
// Error when there is none, or weights are missing.
std::vector<FoundModel> find_models(const std::string& folder);

}  // namespace crema

// The values of a net's weights on the host, by layer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

// The blobs that each layer owns, row-major, with their shapes.
struct WeightBlob {
  Shape shape;
  std::vector<float> values;
};
using NetWeights = std::map<std::string, std::vector<WeightBlob>>;

NetWeights weights_of(Net& net);
// Error if a layer lacks a blob or one has another number of values.
void set_weights(const NetWeights& weights, Net& net);

}  // namespace crema

// Makes a net fully convolutional: a layer that is fully connected becomes a convolution as large as
// the image that it reads, with the same weights. A larger image then gives a map of scores.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

struct Surgery {
  NetParameter net;
  std::vector<int> origins;  // for each layer, the one of the given net that it comes from
  // A line for each layer that was changed or left out.
  std::vector<std::string> changes;
  // Global poolings before the converted layers, whose tops are no larger for a larger image.
  std::vector<std::string> warnings;
  std::set<std::string> transposed;  // layers whose weights were stored inputs by outputs
};

// `net`, as deploy() makes it, and the graph of a Net made from it, which has the shapes. Layers
// keep their names. Readers of scores of samples then read maps of them: Softmax and similar layers
// work on each position. Error, with a position, for a layer that cannot, and if there is nothing
// to convert.
Surgery make_fully_convolutional(const NetParameter& net, const Graph& graph,
                                 const std::function<std::string(int layer)>& where);

// Copies the weights of the net to the one that surgery made of it. An image's values are in the
// same order in both, so rows of weights do not change, unless they were transposed.
void copy_weights(Net& from, Net& to, const std::set<std::string>& transposed);

}  // namespace crema

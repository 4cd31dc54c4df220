// Writes BatchNorm, Scale and Bias into the weights and biases before them, in the net's text too.
#pragma once

#include "net/weights/net_weights.h"

namespace crema {

struct FoldedNet {
  NetParameter net;
  NetWeights weights;
  std::vector<std::string> folded;  // names of the layers that are gone
};

// `text`: the upgraded file with the layers of all phases. `net`: the same in phase TEST with its weights, not
// shared and planned with NetOptions::fuse and without pack, after a forward pass. A layer that is folded
// is removed from all phases.
FoldedNet fold_net(const NetParameter& text, Net& net);

}  // namespace crema

// Removes channels that are always 0, as `prune` in a solver leaves them.
#pragma once

#include <string>
#include <vector>

#include "net/weights/net_weights.h"
#include "proto/net.pb.h"

namespace crema {

struct ShrunkNet {
  struct Layer {
    std::string name;
    int64_t before = 0, after = 0;  // channels
  };
  NetParameter net;
  NetWeights weights;
  std::vector<Layer> layers;  // those with weights whose channels could be removed
};

// `text`: the upgraded file with the layers of all phases. `net`: the same in phase TEST with its weights, not
// shared. A channel is removed if all of its values in the layers that make it are 0: weights, biases, and those of
// BatchNorm and Scale behind them. Results stay the same. One channel of each layer is left.
ShrunkNet shrink(const NetParameter& text, Net& net);

}  // namespace crema

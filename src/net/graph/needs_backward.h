// Decides which layers and blobs a gradient flows through (Caffe's rules).
#pragma once

#include <vector>

#include "device/context.h"
#include "net/graph/graph.h"

namespace crema {

struct BackwardNeeds {
  std::vector<bool> layer;                // of graph.net: its backward runs
  std::vector<std::vector<bool>> bottom;  // for each layer and bottom: a gradient is computed
  std::vector<std::vector<bool>> wanted;  // the same: some learned parameter is behind it
};

// loss_weights: for each layer of graph.net, one per top. seed_outputs: tops that no layer reads
// count as losses.
BackwardNeeds find_backward_needs(const Graph& graph, const std::vector<const Layer*>& layers,
                                  const std::vector<std::vector<float>>& loss_weights,
                                  bool seed_outputs);

}  // namespace crema

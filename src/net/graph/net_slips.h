// Slips in a net that concern more than one layer: bottoms in the wrong order, two layers of one name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "device/context.h"
#include "net/graph/graph.h"

namespace crema {

struct GivenBottoms {
  const LayerParameter& layer;
  const std::vector<std::string>& blobs;
  const std::vector<Shape>& shapes;
  bool training;
  const std::string& folder;  // of the net's file
};

// Runs `work`, which sets up a layer or infers its tops. Labels before scores, or regions before the
// map that they are of, are a frequent slip: its Error says so where another order would fit.
void with_order_hint(Context& context, const GivenBottoms& bottoms,
                     const std::function<void()>& work);

// The same if both orders have fitting shapes: Error for a loss that has weights behind a bottom
// without a gradient, the labels, and none behind the others. `wanted`: for each layer and bottom,
// whether a trained parameter is behind it.
void refuse_swapped_losses(const Graph& graph, const std::vector<const Layer*>& layers,
                           const std::vector<std::vector<bool>>& wanted);

// A warning if a layer above has the same name and also weights: weights are stored and found by
// name.
void warn_of_namesake(Context& context, const Graph& graph, const Node& node);

}  // namespace crema

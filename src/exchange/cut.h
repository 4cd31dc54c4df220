// Ends a net before some of its layers.
#pragma once

#include <string>
#include <vector>

#include "proto/net.pb.h"

namespace crema {

// Leaves out these layers and all that need their tops; what they read becomes the net's results.
// Returns, for each layer left, its index in `net` before. Error if there is no such layer, or
// nothing is left.
std::vector<int> cut_before(NetParameter* net, const std::vector<std::string>& layers);

// The layers that select objects among candidates (LayerFacts::selects): what chips leave to the
// program. Error if there is none.
std::vector<std::string> layers_that_select(const NetParameter& net);

}  // namespace crema

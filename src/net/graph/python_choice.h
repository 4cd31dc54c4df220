// Layers of type Python that the author's class and a native version can run.
#pragma once

#include <string>
#include <vector>

#include "net/graph/graph.h"

namespace crema {

// Sets up the layer of a node. If the author's module is found but fails, the native version
// replaces the layer: then true. Logs which of both runs and how to choose.
bool set_up_layer(Context& context, Node& node, const std::vector<Shape>& bottoms,
                  const std::string& folder);

}  // namespace crema

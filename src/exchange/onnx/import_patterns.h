// Layers that together compute what one layer does, such as x * sigmoid(x).
#pragma once

#include <set>
#include <string>

#include "exchange/onnx/import_graph.h"

namespace crema {

// Replaces groups of layers by one, or by fewer. Blobs in `kept` stay.
void apply_import_patterns(ImportGraph& graph, const std::set<std::string>& kept);

}  // namespace crema

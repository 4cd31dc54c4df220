// Products of computed matrices as layers that exist.
#pragma once

#include "exchange/onnx/import_graph.h"

namespace crema {

// Layers of type MatMul, which no pattern has replaced, become products of single values and sums.
void write_out_products(ImportGraph& graph);

}  // namespace crema

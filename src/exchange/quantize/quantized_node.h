// Which layers of a net compute with integers.
#pragma once

#include <optional>

#include "kernels/conv/quantized/quantization.h"
#include "net/graph/graph.h"

namespace crema {

// The layer reads quantization_param, and has weights of its own whose rows are outputs.
bool is_quantizable(const Node& node);

// What it says; none: the layer computes in float32.
std::optional<LinearQuantization> quantization_of(const Node& node, const Graph& graph);

}  // namespace crema

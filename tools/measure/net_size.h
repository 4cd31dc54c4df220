// How large a net is, and the work of a pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/graph/graph.h"

namespace crema {

// For a forward pass, for each layer of the net.
std::vector<int64_t> multiply_adds_of(const Graph& graph);

// Elements of the parameters that the net owns.
int64_t parameters_of(const Graph& graph);

// With commas: "1,234,567".
std::string grouped(int64_t number);

}  // namespace crema

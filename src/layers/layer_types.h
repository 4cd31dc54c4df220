// The names of all layers, for programs that cannot see the registry's table themselves: a library
// that is loaded at run time has hidden copies of what headers define.
#pragma once

#include <string>
#include <vector>

namespace crema {

// Sorted; without the fused ones, which only the planner makes.
std::vector<std::string> layer_types();
// Of fillers, sorted.
std::vector<std::string> filler_types();

}  // namespace crema

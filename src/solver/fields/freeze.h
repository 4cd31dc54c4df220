// Which layers the solver's `freeze` keeps from learning.
#pragma once

#include <functional>
#include <string>

namespace crema {

class Net;
struct SolverFile;

// Tells whether a layer is frozen; empty when none is. Error when a pattern is not a valid regular
// expression.
std::function<bool(const std::string& layer)> frozen_layers(const SolverFile& file);
// Error when a pattern of `freeze` matches no layer of the net.
void check_frozen_layers(const SolverFile& file, const Net& net);

}  // namespace crema

// The outputs of a net by name, as the readers show them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "solver/events/events.h"

namespace crema {

using NamedValues = std::vector<std::pair<std::string, double>>;

// Adds outputs, but none whose name is there already. The values of an output of several elements
// are called name[0], name[1]...
void add_outputs(NamedValues& values, const std::vector<OutputValue>& outputs);

}  // namespace crema

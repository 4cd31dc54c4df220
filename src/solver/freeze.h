// Which layers the solver's `freeze` stops. Patterns are RE2's: regular expressions as in most
// languages, without what would need more than one pass over the name (look-ahead,
// back-references).
#pragma once

#include <functional>
#include <string>

namespace crema {

class Net;
struct SolverFile;

// Whether a layer's blobs do not learn; empty when all do. Error when a pattern is no regular
// expression.
std::function<bool(const std::string& layer)> frozen_layers(const SolverFile& file);
// Error when a pattern of `freeze` stops no layer of the net.
void check_frozen_layers(const SolverFile& file, const Net& net);

}  // namespace crema

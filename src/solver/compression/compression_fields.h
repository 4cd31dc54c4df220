// The fields of `quantize`, `prune` and `teacher` in a solver's file.
#pragma once

#include "net/prototxt/prototxt.h"

namespace crema {

// Error, with the position, for a value out of range, a pattern that is no regular expression, and a file of the
// teacher that does not exist; without finds_weights its weights need not be there yet.
void check_compression(const SolverFile& file, bool finds_weights = true);

}  // namespace crema

// Compares two runs by their records.
#pragma once

#include <string>

namespace crema {

// Each is a metrics.jsonl, whose last run counts, or a folder with one. Prints last and best values
// next to each other, and the differences of net or solver.
void compare_runs(const std::string& a, const std::string& b);

}  // namespace crema

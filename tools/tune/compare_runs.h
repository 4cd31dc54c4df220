// Compares two trainings by what they recorded.
#pragma once

#include <string>

namespace crema {

// Each is a metrics.jsonl, whose last run counts, or a folder with one. Prints last and best values
// beside each other, and where net or solver differ.
void compare_runs(const std::string& a, const std::string& b);

}  // namespace crema
